"""Files of weights and where they come from."""
