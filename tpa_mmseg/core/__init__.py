"""The method itself, in pure PyTorch: nothing here knows OpenMMLab, open_clip or timm."""

from .anchors import AnchorRule, Anchors, anchor_map, find_anchors
from .bank import PrototypeBank
from .bilinear import Grid, Resized, RowSource, UpsampledNorm, axis_taps, spread_
from .fusion import FusedScores, Fusion, Lookup, Prototypes, sweep_labels
from .scores import ARGMAX, ClassProbabilities, DecisionRule, QueryScores, ScoreMap

__all__ = [
    'ARGMAX',
    'AnchorRule',
    'Anchors',
    'ClassProbabilities',
    'DecisionRule',
    'FusedScores',
    'Fusion',
    'Grid',
    'Lookup',
    'PrototypeBank',
    'Prototypes',
    'QueryScores',
    'Resized',
    'RowSource',
    'ScoreMap',
    'UpsampledNorm',
    'anchor_map',
    'axis_taps',
    'find_anchors',
    'spread_',
    'sweep_labels',
]
