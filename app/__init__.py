"""Application layer: settings, stores, documents, chat and the command line; no widgets."""
