"""The conversation: messages and the composer."""
