"""Finding the passages of a document that fit the words of a question."""
