"""CLIP itself: names of classes, text features, towers."""
