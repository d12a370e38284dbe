"""The catalog: every host, backbone, benchmark, encoder, weights file and row of the paper once, as data.

The entries are in the YAML files of this folder; a package outside the tree can add its own (docs/configs.md).
"""

from .combinations import CONFIGS, Catalog, Combination
from .entries import (
    Backbone,
    Benchmark,
    Dataset,
    Encoder,
    Host,
    Row,
    Settings,
    SuitePlan,
    Variant,
    WeightsFile,
)
from .loading import add, load, sam_weights, shipped, weights
