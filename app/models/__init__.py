"""Models on disk: the catalogue, downloads and imports."""
