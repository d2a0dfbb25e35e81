"""The text of documents beside the conversation."""
