"""The context ledger: what the model reads of a conversation, what not, and what stands in its place."""
