"""Long conversations that are held by a script, through the same service and store as in the window."""
