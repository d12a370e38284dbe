"""The paper's experiments: what to run, running it, and what came out beside what the paper prints."""

from .experiments import EXPERIMENTS, plan, suite_of
from .folders import WORK_DIR, RunFolder, State
from .results import RunResult
from .sources import Source
