"""Reading GGUF files: header, tensors, architecture and tokenizer."""
