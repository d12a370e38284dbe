"""The paper's experiments: what to run, running it, and what came out beside what the paper prints."""

from .experiments import EXPERIMENTS, plan, suite_of
from .folders import WORK_DIR, RunFolder, State, collect
from .results import RunResult
