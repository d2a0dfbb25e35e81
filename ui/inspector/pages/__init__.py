"""The Pages panel: every page of the conversation in memory, what is in it and how exactly it is kept."""
