"""The paper's experiments: what to run, running it, and what came out beside what the paper prints."""

from .experiments import EXPERIMENTS, Experiment, plan, world_of
from .layout import WORK_DIR, RunFolder, RunView, State, collect
from .reference import TOLERANCE, Comparison, Reference, compare, compare_all, cost_reference, reference
from .results import RunResult
from .runs import Run, Variant
from .world import World
from .worlds import WORLDS

__all__ = [
    'EXPERIMENTS',
    'TOLERANCE',
    'WORK_DIR',
    'WORLDS',
    'Comparison',
    'Experiment',
    'Reference',
    'Run',
    'RunFolder',
    'RunResult',
    'RunView',
    'State',
    'Variant',
    'World',
    'collect',
    'compare',
    'compare_all',
    'cost_reference',
    'plan',
    'reference',
    'world_of',
]
