"""Pieces of vision transformers that CLIP, encoders and hosts share. PyTorch alone."""
