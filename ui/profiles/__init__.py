"""Profiles in the window: which one the open conversation has, choosing one, and making own ones."""
