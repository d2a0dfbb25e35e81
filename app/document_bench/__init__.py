"""What `octavo bench document` measures: facts of a long handbook, asked for by each way to read it."""
