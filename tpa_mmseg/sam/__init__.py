"""SAM itself: its image encoder, and its decoder from prompts to masks."""
