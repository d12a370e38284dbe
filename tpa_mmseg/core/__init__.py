"""The method itself, in pure PyTorch: nothing here knows OpenMMLab, open_clip or timm."""

from .adapter import Adapter, Labels, decide
from .anchors import AnchorRule, Anchors, anchor_map, find_anchors
from .bank import Coverage, PrototypeBank
from .bilinear import Grid, Resized, RowSource, UpsampledNorm, axis_taps, spread_
from .evidence import ENCODER, Evidence, EvidenceCache
from .fusion import FusedScores, Fusion, Lookup, Prototypes
from .scores import ARGMAX, ClassProbabilities, DecisionRule, QueryScores, ScoreMap
