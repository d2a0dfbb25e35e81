"""Prefixes that outlive the process: which pages are kept, and how they are found and used again."""
