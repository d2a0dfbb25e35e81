"""Markdown as it streams in: split into blocks, written into text documents, code coloured."""
