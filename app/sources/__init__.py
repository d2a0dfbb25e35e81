"""What an answer or a note rests on: citations, and the sentences of a text that say it."""
