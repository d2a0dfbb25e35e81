"""Icons, themes, prompts and the model catalogue: data only."""
