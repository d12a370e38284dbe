"""How the networks of the miniature suite were trained, and how they are measured."""
