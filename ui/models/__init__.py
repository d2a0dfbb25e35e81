"""Choosing, getting and loading models."""
