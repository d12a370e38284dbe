"""The miniature world: a painted, labeled benchmark with tiny networks that were really trained on it."""

from .dataset import MiniatureDataset
