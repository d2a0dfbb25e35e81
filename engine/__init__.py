"""The MLX engine: backends, models, KV caches, generation and budgets; neither Qt nor SQLite."""
