"""The right pane: precision and sampling."""
