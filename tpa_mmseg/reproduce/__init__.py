"""The paper's experiments: what to run, running it, and what came out beside what the paper prints."""

from .experiments import EXPERIMENTS, Experiment, plan, suite_of
from .layout import WORK_DIR, RunFolder, RunView, State, collect
from .reference import TOLERANCE, Comparison, Reference, compare, compare_all, cost_reference, reference
from .results import RunResult
from .runs import Run, Setting
from .suite import SUITES, Suite

__all__ = [
    'EXPERIMENTS',
    'SUITES',
    'TOLERANCE',
    'WORK_DIR',
    'Comparison',
    'Experiment',
    'Reference',
    'Run',
    'RunFolder',
    'RunResult',
    'RunView',
    'Setting',
    'State',
    'Suite',
    'collect',
    'compare',
    'compare_all',
    'cost_reference',
    'plan',
    'reference',
    'suite_of',
]
