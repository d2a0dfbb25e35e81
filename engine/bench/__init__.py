"""Measurements side by side with mlx-lm."""
