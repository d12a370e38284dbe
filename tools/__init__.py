"""The command lines. Installed as ``tpa_tools``, behind the command ``tpa``."""
