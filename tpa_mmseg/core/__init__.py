"""The method itself, in pure PyTorch: nothing here knows OpenMMLab, open_clip or timm."""

from .adapter import Adapter, Labels, decide
from .adjoint import spread_
from .alarms import Alarms
from .anchors import AnchorRule, Anchors, anchor_map, find_anchors
from .bank import Coverage, PrototypeBank
from .bilinear import Grid, Resized, RowSource
from .decision import ARGMAX, DecisionRule, label_type
from .evidence import ENCODER, Evidence, EvidenceCache
from .fusion import FusedScores, Fusion, Lookup, Prototypes
from .norm import UpsampledNorm
from .scores import ClassProbabilities, QueryScores, ScoreMap
from .taps import axis_taps
