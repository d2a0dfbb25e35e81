"""What is read of documents that a model does not read whole, and where what it says comes from."""
