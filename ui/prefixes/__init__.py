"""The window's view of the pages that are kept on disk."""
