"""Writes configs and their index from the catalog, for ``tools/config_index.py``."""
