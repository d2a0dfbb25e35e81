"""The Context panel: what the model reads of the conversation, what not, and what stands in its place."""
