"""Reading files into text."""
