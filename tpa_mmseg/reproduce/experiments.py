"""The experiments of the paper, as data: which runs, and which variants of TPA are scored in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..datasets.pool import DEFAULT_SIZE
from ..errors import TPAError
from .runs import FULL, Run, Variant
from .world import World
from .worlds import WORLDS

#: What is left out of TPA, one thing at a time, in the order of the paper.
COMPONENTS = (
    Variant('per-image', 'Per-image prototypes (no pool)', bank_scope='image'),
    Variant('clip-features', 'CLIP patch features (replace DINO)', encoder='clip'),
    Variant('random-anchors', 'Random anchor selection (same K)', anchors={'random': True}),
    Variant('no-centering', 'No centering (raw cosine fusion)', fusion={'center': False}),
    Variant('full', 'TPA (full)'),
)
THRESHOLDS = tuple(Variant(f'k-{k:g}', f'k = {k:g}', anchors={'k': k}, value=k) for k in (1.0, 1.5, 2.0, 2.5, 3.0))
POOL_SHARES = tuple(
    Variant('full' if share == 1 else f'pool-{share:g}', f'{100 * share:g} % of the pool', fraction=share, value=share)
    for share in (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
)
OVERLAPS = tuple(Variant(key, f'{key.capitalize()} label overlap', pool=key) for key in ('high', 'random', 'low'))
#: Images that the experiment ``cost`` measures, after others that warm up; images that ``pictures`` chooses from.
COST_WARM_UP, COST_MEASURED, PICTURES_LOOKED_AT = 3, 30, 200
#: A class counts as repeated when it is seen in at least so many images of the pool.
REPETITIONS = (2, 5, 10)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Args:
        name: What the command line calls it.
        title: What people call it.
        about: What it shows, in a sentence.
        runs: Its runs in a world, in the order of the paper.
        images: How many of a benchmark's test images a run scores.
    """

    name: str
    title: str
    about: str
    runs: Callable[[World], Iterable[Run]]
    images: Callable[[int], int] = lambda count: count


def _grid(name: str, world: World, rows: Iterable[tuple[str, str]], benchmarks: Iterable[str], **options) -> list[Run]:
    return [Run(name, world.name, *row, benchmark, **options) for row in rows for benchmark in benchmarks]


def _main(world: World) -> list[Run]:
    return _grid('main', world, world.rows, world.benchmarks)


def _vfm(world: World) -> list[Run]:
    return [
        Run('vfm', world.name, 'proxyclip', backbone, benchmark, proxy=proxy)
        for backbone in world.proxy_backbones
        for proxy in world.proxies
        for benchmark in world.benchmarks
    ]


def _components(world: World) -> list[Run]:
    return _grid('components', world, [world.ablation_host], world.ablation_benchmarks, variants=COMPONENTS)


def _thresholds(world: World) -> list[Run]:
    return _grid('k', world, [world.ablation_host], world.ablation_benchmarks, variants=THRESHOLDS)


def _extractor(world: World) -> list[Run]:
    variants = tuple(Variant(key, world.encoder_names[key], encoder=key) for key in world.encoders)
    return _grid('extractor', world, [world.ablation_host], world.benchmarks, variants=variants)


def _composition(world: World) -> list[Run]:
    return [
        Run('composition', world.name, host, backbone, benchmark, protocol=protocol, plugin=plugin)
        for host, backbone, protocol, plugin in world.compositions
        for benchmark in world.benchmarks
        # MLMP's protocol has no ADE20K.
        if not (protocol == 'mlmp_224' and benchmark == 'ade20k')
    ]


def _bank_size(world: World) -> list[Run]:
    return _grid('bank-size', world, [world.growth_host], world.ablation_benchmarks, variants=POOL_SHARES)


def _repetition(world: World) -> list[Run]:
    return _grid('repetition', world, [world.growth_host], world.benchmarks, variants=())


def _overlap(world: World) -> list[Run]:
    return _grid('overlap', world, [world.ablation_host], world.ablation_benchmarks, variants=OVERLAPS)


def _cost(world: World) -> list[Run]:
    return _grid('cost', world, world.cost_rows, world.ablation_benchmarks[:1], variants=(FULL, COMPONENTS[1]))


def _pictures(world: World) -> list[Run]:
    return _grid('pictures', world, [world.ablation_host], world.ablation_benchmarks, variants=(FULL,))


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment('main', 'Main table', 'every host with and without TPA', _main),
        Experiment(
            'vfm', 'Encoders inside ProxyCLIP', "TPA on hosts with another encoder inside; the bank's stays", _vfm
        ),
        Experiment('components', 'Components', 'what each part of TPA is good for', _components),
        Experiment('k', 'Anchor threshold', 'how much k in tau = k/C matters', _thresholds),
        Experiment('extractor', "The bank's encoder", 'banks of other features', _extractor),
        Experiment('composition', 'Composition', 'TPA on top of other plug-ins', _composition),
        Experiment('bank-size', 'Size of the pool', 'gain against the share of the pool', _bank_size),
        Experiment(
            'repetition',
            'Repetition of classes',
            'how often classes are seen again in a pool',
            _repetition,
            lambda count: min(DEFAULT_SIZE, count),
        ),
        Experiment(
            'overlap',
            'Label overlap',
            'pools that share many or few classes with the test',
            _overlap,
            lambda count: count - count // 2,
        ),
        Experiment(
            'cost',
            'Cost',
            'time of each step, size of bank and cache',
            _cost,
            lambda count: min(COST_MEASURED, count),
        ),
        Experiment(
            'pictures',
            'Pictures',
            'what TPA changes in images, and where anchors are',
            _pictures,
            lambda count: min(PICTURES_LOOKED_AT, count),
        ),
    )
}


def plan(
    experiment: str,
    world: str = 'paper',
    hosts: Sequence[str] = (),
    backbones: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
) -> list[Run]:
    """The runs of an experiment, those that pass the filters; an empty filter lets all pass."""
    if experiment not in EXPERIMENTS:
        raise TPAError(f'There is no experiment {experiment!r}: known are {", ".join(EXPERIMENTS)}, or all.')
    place = world_of(world)
    for option, given, known in (
        ('--host', hosts, place.hosts),
        ('--backbone', backbones, place.backbones),
        ('--dataset', benchmarks, place.benchmarks),
    ):
        for value in given:
            if value not in known:
                raise TPAError(f'{option} {value} is not in the {world} world: it has {", ".join(known)}.')
    return [
        run
        for run in EXPERIMENTS[experiment].runs(place)
        if place.has(run)
        and (not hosts or run.host in hosts)
        and (not backbones or run.backbone in backbones)
        and (not benchmarks or run.benchmark in benchmarks)
    ]


def planned_images(run: Run) -> int:
    """Test images that a run scores with the settings of its config; 0 where the world does not know."""
    return EXPERIMENTS[run.experiment].images(world_of(run.world).images.get(run.benchmark, 0))


def world_of(name: str) -> World:
    """The world of a name."""
    if name not in WORLDS:
        raise TPAError(f'There is no world {name!r}: known are {", ".join(WORLDS)}.')
    return WORLDS[name]
