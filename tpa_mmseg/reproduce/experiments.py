"""The experiments of the paper, as data: which runs, and which settings of TPA are scored in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..datasets.pool import DEFAULT_SIZE
from ..errors import TPAError
from .runs import FULL, Run, Setting
from .suite import SUITES, Suite

#: What is left out of TPA, one thing at a time, in the order of the paper.
COMPONENTS = (
    Setting('per-image', 'Per-image prototypes (no pool)', bank_scope='image'),
    Setting('clip-features', 'CLIP patch features (replace DINO)', encoder='clip'),
    Setting('random-anchors', 'Random anchor selection (same K)', anchors={'random': True}),
    Setting('no-centering', 'No centering (raw cosine fusion)', fusion={'center': False}),
    Setting('full', 'TPA (full)'),
)


def _points(name: str, axis: str, values: Sequence[float], change: Callable[[float], dict]) -> tuple[Setting, ...]:
    """Settings along an axis. Args: change: what a value changes of a :class:`Setting`."""
    return tuple(Setting(f'{name}-{x:g}', f'{name} = {x:g}', axis=axis, value=x, **change(x)) for x in values)


THRESHOLDS = _points('k', 'k in tau = k / C', (1.0, 1.5, 2.0, 2.5, 3.0), lambda k: {'anchors': {'k': k}})
#: What the method leaves open beside k; each axis holds the default.
SENSITIVITY = (
    *_points('alpha', 'alpha', (0.0, 0.25, 0.5, 0.75, 0.9), lambda alpha: {'fusion': {'alpha': alpha}}),
    *_points('lambda', 'lambda', (1.0, 2.5, 5.0, 10.0, 20.0), lambda weight: {'fusion': {'lambda_': weight}}),
    *_points('seed', 'seed of the pool', range(5), lambda seed: {'pool_seed': seed}),
)
#: Shares of the test images that banks are made of, and the config's own pool of 100.
POOL_SHARES = (
    *(
        Setting(f'share-{share:g}', f'{100 * share:g} % of the test images', fraction=share, value=share)
        for share in (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
    ),
    Setting('full', f'{DEFAULT_SIZE} images'),
)
OVERLAPS = tuple(
    Setting(key, f'{key.capitalize()} label overlap', axis='label overlap, %') for key in ('high', 'random', 'low')
)
#: Consistent TPA, and what its parts are good for. Ours, not the paper's.
CONSISTENCY = (
    FULL,
    Setting('consistent', 'Consistent TPA', fusion={'consistent': True}),
    Setting('around-zero', 'No centering', fusion={'consistent': {'center': False}}),
    Setting('no-gate', 'No gate', fusion={'consistent': {'gate': 0.0}}),
    Setting('fixed', 'Fixed weight (beta2 = 8)', fusion={'consistent': {'beta2': 8.0}}),
    Setting('no-cap', 'No cap by the agreement of halves', fusion={'consistent': {'cap': False}}),
)
#: Images that the experiment ``cost`` measures, after others that warm up; pool images that ``anchors`` chooses from.
COST_WARM_UP, COST_MEASURED, ANCHORS_LOOKED_AT = 3, 30, 20
#: Classes are counted that are seen in at least so many images of the pool.
REPETITIONS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Args:
        name: What the command line calls it.
        title: What people call it.
        about: What it shows, in a sentence.
        grid: Returns the rows, benchmarks and (if it is not TPA alone) settings of its runs in a suite.
        images: Returns how many of a benchmark's test images a run scores.
        scored: Whether hosts and settings of TPA are scored.
    """

    name: str
    title: str
    about: str
    grid: Callable[[Suite], tuple]
    images: Callable[[int], int] = lambda count: count
    scored: bool = True

    def runs(self, suite: Suite, comparisons: bool = False) -> list[Run]:
        """Returns its runs in a suite, in the order of the paper; then those of other methods, if they are wanted."""
        rows, benchmarks, *settings = self.grid(suite)
        found = [Run(self.name, suite.name, row, benchmark, *settings) for row in rows for benchmark in benchmarks]
        others = suite.comparisons.get(self.name, ()) if comparisons else ()
        return found + [Run(self.name, suite.name, row, name, ()) for row in others for name in suite.benchmarks]


def _rows(name: str) -> Callable[[Suite], tuple]:
    return lambda suite: (getattr(suite, name), suite.benchmarks)


def _ablation(*settings: Setting) -> Callable[[Suite], tuple]:
    return lambda suite: ([suite.ablation], suite.ablation_benchmarks, settings)


def _growth(*settings: Setting) -> Callable[[Suite], tuple]:
    return lambda suite: ([suite.growth], suite.benchmarks, settings)


def _extractor(suite: Suite) -> tuple:
    settings = tuple(Setting(key, entry.title, encoder=key) for key, entry in suite.extractors.items())
    return [suite.ablation], suite.benchmarks, settings


def _consistency(suite: Suite) -> tuple:
    return (*suite.rows, *suite.consistency), suite.benchmarks, CONSISTENCY


def _cost(suite: Suite) -> tuple:
    return suite.cost, suite.benchmarks, (FULL, COMPONENTS[1])


def _pictures(suite: Suite) -> tuple:
    return suite.pictures, suite.picture_benchmarks


def _anchors(suite: Suite) -> tuple:
    return [suite.anchors] if suite.anchors else [], suite.benchmarks, ()


_SENSITIVITY = 'how much alpha, lambda and the draw of the pool matter'
_HOSTS = 'every host with and without TPA'
_VFM = "TPA on hosts with another encoder inside; the bank's stays"
_SIZES = 'gain and coverage against the share of the test images in the bank'
_AGAIN = 'how often classes are seen again in a pool, by labels alone'
_OVERLAP = 'pools that share many or few classes with the test'
_TIMES = 'time of each step, size of bank and cache'
_FOLLOWS = "whether labels follow the image, and consistent TPA (ours, not the paper's)"
_PICTURES = 'what TPA changes in images: most, as usual, and worst'
_EXPERIMENTS = (
    Experiment('main', 'Main table', _HOSTS, _rows('rows')),
    Experiment('vfm', 'Encoders inside ProxyCLIP', _VFM, _rows('vfm')),
    Experiment('components', 'Components', 'what each part of TPA is good for', _ablation(*COMPONENTS)),
    Experiment('k', 'Anchor threshold', 'how much k in tau = k/C matters', _ablation(*THRESHOLDS)),
    Experiment('sensitivity', 'Sensitivity', _SENSITIVITY, _ablation(*SENSITIVITY)),
    Experiment('extractor', "The bank's encoder", 'banks of other features', _extractor),
    Experiment('composition', 'Composition', 'TPA on top of other plug-ins', _rows('composition')),
    Experiment('bank-size', 'Size of the pool', _SIZES, _growth(*POOL_SHARES)),
    Experiment('repetition', 'Repetition of classes', _AGAIN, _growth(), scored=False),
    Experiment('overlap', 'Label overlap', _OVERLAP, _ablation(*OVERLAPS), lambda count: count - count // 2),
    Experiment('consistency', 'Consistency', _FOLLOWS, _consistency),
    Experiment('cost', 'Cost', _TIMES, _cost, lambda count: min(COST_MEASURED, count), False),
    Experiment('pictures', 'Pictures', _PICTURES, _pictures, scored=False),
    Experiment('anchors', 'Anchors', 'where anchors are', _anchors, lambda count: min(ANCHORS_LOOKED_AT, count), False),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _EXPERIMENTS}


def plan(
    experiment: str,
    suite: str = 'paper',
    hosts: Sequence[str] = (),
    backbones: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    comparisons: bool = False,
) -> list[Run]:
    """The runs of an experiment, those that pass the filters; an empty filter lets all pass.

    Args:
        experiment: Its name.
        suite: Name of the suite.
        hosts, backbones, benchmarks: The filters.
        comparisons: With the rows of other methods that the paper's table has.
    """
    if experiment not in EXPERIMENTS:
        raise TPAError(f'There is no experiment {experiment!r}: known are {", ".join(EXPERIMENTS)}, or all.')
    known = suite_of(suite)
    filters = (
        ('--host', hosts, known.hosts, lambda run: run.row.host),
        ('--backbone', backbones, known.backbones, lambda run: run.row.backbone),
        ('--dataset', benchmarks, known.benchmarks, lambda run: run.benchmark),
    )
    found = [run for run in EXPERIMENTS[experiment].runs(known, comparisons) if known.has(run)]
    for option, given, names, of in filters:
        for value in given:
            if value not in names:
                raise TPAError(f'{option} {value} is not in the {suite} suite: it has {", ".join(names)}.')
        found = [run for run in found if not given or of(run) in given]
    return found


def planned_images(run: Run) -> int:
    """Test images that a run scores with the settings of its config; 0 if the suite does not know."""
    return EXPERIMENTS[run.experiment].images(suite_of(run.suite).images.get(run.benchmark, 0))


def suite_of(name: str) -> Suite:
    """The suite of a name."""
    if name not in SUITES:
        raise TPAError(f'There is no suite {name!r}: known are {", ".join(SUITES)}.')
    return SUITES[name]
