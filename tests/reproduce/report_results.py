"""Made-up results in the schema of real ones, for tests of the report. Nothing here was measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PIL import Image

from tests.reproduce.made_up import PROVENANCE
from tpa_mmseg.reproduce.experiments import plan, planned_images
from tpa_mmseg.reproduce.folders import RunFolder
from tpa_mmseg.reproduce.frames import reference
from tpa_mmseg.reproduce.results import (
    BankInfo,
    ClassScore,
    Cost,
    OverlapSplit,
    Picture,
    RepetitionCurve,
    RunResult,
    Scores,
    Timing,
    VariantResult,
)
from tpa_mmseg.reproduce.runs import Run, Setting

STEPS = ('clip', 'host', 'encoder', 'total', 'bank_encoder_pass', 'bank_update', 'feature_transfer', 'lookup')
OVERLAP = {'high': 0.8, 'random': 0.5, 'low': 0.2}
CLASSES = ('sky & cloud', 'grass', 'never seen', 'zebra', 'wheel', 'net <wire>')


def fill(work_dir: Path, experiment: str, suite: str = 'paper', only: Callable[[Run], bool] = lambda run: True) -> None:
    """Writes results of an experiment's runs, those that ``only`` lets pass."""
    for number, run in enumerate(plan(experiment, suite)):
        if only(run):
            save(work_dir, made_up(run, number, RunFolder.of(run, work_dir)), run)


def save(work_dir: Path, result: RunResult, run: Run) -> None:
    result.save(RunFolder.of(run, work_dir).results)


def made_up(
    run: Run, number: int, folder: RunFolder, base: float | None = None, gain: float | None = None
) -> RunResult:
    """A result near the paper's numbers; ``base`` and ``gain`` replace them."""
    sections = {}
    if run.experiment in ('repetition', 'cost', 'pictures', 'anchors'):
        name, make = {
            'repetition': ('repetition', _repetition),
            'cost': ('cost', _cost),
            'pictures': ('pictures', _pictures),
            'anchors': ('pictures', _anchors),
        }[run.experiment]
        sections[name] = make(folder)
    else:
        printed = reference(run)
        if base is None:
            base = (printed.base or 40.0) + 0.1 * (number % 5)
        sections['host'] = Scores(70.0, base, 60.0)
        sections['variants'] = tuple(_variant(run, variant, base, gain) for variant in run.settings)
    if run.experiment == 'overlap':
        sections['overlap'] = tuple(
            OverlapSplit(key, share, share + 0.1, 30, 60, CLASSES[: round(6 * share)]) for key, share in OVERLAP.items()
        )
    return RunResult(
        run.experiment,
        run.suite,
        run.name,
        'host/config.py',
        planned_images(run),
        12.5,
        2.5,
        PROVENANCE,
        **sections,
    )


def _variant(run: Run, variant: Setting, base: float, gain: float | None) -> VariantResult:
    if gain is None:
        printed = reference(run, variant.key).gain
        gain = round(2.0 if printed is None else printed, 2)
    value = OVERLAP.get(variant.key, variant.value)
    classes = tuple(
        ClassScore(name, None, None, None, 0, 0, 0)
        if name == 'never seen'
        else ClassScore(
            name, 10.0 * place, 10.0 * place + 3 - place, 3.0 - place, 10 ** (place + 1), 100 * place, 20 * place + 1
        )
        for place, name in enumerate(CLASSES)
    )
    told = {'kappa_0': 0.4, 'kappa_inf': 0.8, 'rho': 0.9, 'unit': 5.0, 'beta2': 4.0} if variant.fusion else {}
    bank = BankInfo(100, len(CLASSES) - 1, len(CLASSES), 5000, 4096, diagnosis=told)
    return VariantResult(
        variant.key, value, Scores(72.0, round(base + gain, 2), 61.0), Scores(2.0, gain, 1.0), classes, bank
    )


def _repetition(folder: RunFolder) -> tuple[RepetitionCurve, ...]:
    shares = {'1': (0.1, 0.8, 1.0), '2': (0.0, 0.5, 1.0), '5': (0.0, 0.2, 0.9), '10': (0.0, 0.1, 0.7)}
    return (RepetitionCurve('labels', (1, 10, 100), shares, num_classes=20, draws=100),)


def _cost(folder: RunFolder) -> Cost:
    times = {step: Timing(10.0 + place, 9.5 + place, 11.0 + place, 30) for place, step in enumerate(STEPS)}
    return Cost(times, 0.12, 0.4, (448, 448), 21, 'Imaginary device', prototypes_kb=31.5)


def _pictures(folder: RunFolder) -> tuple[Picture, ...]:
    found = []
    folder.pictures.mkdir(parents=True)
    for choice, color in (('best', 'seagreen'), ('worst', 'firebrick')):
        for kind, width in (('comparison', 2000), ('host', 600), ('tpa', 600)):
            file = f'pictures/{choice}-1-{kind}.png'
            Image.new('RGB', (width, 400), color).save(folder.path / file)
            found.append(Picture(file, kind, choice, 'scene.png', f'A {choice} scene, {kind}.', 1.5))
    return tuple(found)


def _anchors(folder: RunFolder) -> tuple[Picture, ...]:
    folder.pictures.mkdir(parents=True)
    Image.new('RGB', (900, 400), 'gold').save(folder.path / 'pictures/most-anchors.png')
    return (Picture('pictures/most-anchors.png', 'anchors', 'most', 'scene.png', 'A scene, anchors.', None),)
