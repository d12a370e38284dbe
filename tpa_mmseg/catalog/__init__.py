"""Every name once, as data."""
