"""A trim measured: its time against reading again, what it costs in quality, and memory over many turns."""
