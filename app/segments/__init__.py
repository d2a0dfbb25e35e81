"""Reading documents in segments: where they are cut, what is noted on each, and how notes are put together."""
