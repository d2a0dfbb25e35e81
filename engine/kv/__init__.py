"""KV caches and their precision."""
