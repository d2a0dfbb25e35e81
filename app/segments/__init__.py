"""Reading documents in segments: where they are cut, what is noted on each, how notes are put together."""
