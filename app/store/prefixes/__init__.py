"""`prefixes.db`: pages of keys and values on disk. Deleting it loses time, never words."""
