"""The paged KV cache measured against mlx-lm's: quality, bytes, speed, and where a step's time goes."""
