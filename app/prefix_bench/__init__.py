"""`octavo bench prefix`: a document that is read, kept, and asked about by processes started afresh."""
