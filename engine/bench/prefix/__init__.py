"""The prefix cache measured: a restart with it and without it, and the prompt caches that mlx-lm saves."""
