"""What a finished run leaves in its ``results.json``: one schema for all experiments, with sections that may be empty.

Scores are percent with two decimals, as :class:`~tpa_mmseg.evaluation.HostTPAMetric` gives them. What has no value (the
IoU of a class that never occurs) is None, never a number.
"""

from __future__ import annotations

import json
import types
import typing
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path

from ..errors import TPAError
from ..io import write_json

SCHEMA = 2
# Last parts of settings that no result depends on.
_ONLY_SPEED = ('num_workers', 'persistent_workers', 'pin_memory', 'prefetch_factor')


@dataclass(frozen=True)
class Scores:
    """Percent; as differences, percentage points."""

    aAcc: float | None
    mIoU: float | None
    mAcc: float | None


@dataclass(frozen=True)
class ClassScore:
    """One class of one variant.

    Args:
        name: The class.
        host_iou: IoU of the host alone.
        tpa_iou: IoU with TPA.
        gain: Their difference.
        support: Pixels of the class in the truth.
        anchors: Anchors of the class in the bank; None where there is no bank (per-image prototypes).
    """

    name: str
    host_iou: float | None
    tpa_iou: float | None
    gain: float | None
    support: int
    anchors: int | None = None


@dataclass(frozen=True)
class BankInfo:
    """The bank that a variant was scored with.

    Args:
        images: Pool images folded in.
        classes_covered: Classes that have a prototype.
        num_classes: Classes there are.
        anchors: Anchors of all classes.
        bytes: Size of sums and counts.
    """

    images: int
    classes_covered: int
    num_classes: int
    anchors: int
    bytes: int


@dataclass(frozen=True)
class VariantResult:
    """TPA in one setting, scored in the same pass as the others of its run.

    Args:
        key: Key of the :class:`~tpa_mmseg.reproduce.runs.Setting`, such as ``'full'`` or ``'k-1.5'``.
        value: What an axis of a plot shows: k, the share of the pool, the overlap. None where there is no axis.
        tpa: Scores with TPA.
        gain: Gain over the host.
        per_class: Every class, in the dataset's order.
        bank: None for per-image prototypes.
    """

    key: str
    value: float | None
    tpa: Scores
    gain: Scores
    per_class: tuple[ClassScore, ...]
    bank: BankInfo | None = None


@dataclass(frozen=True)
class RepetitionCurve:
    """How often classes repeat in pools of growing size.

    Args:
        source: ``'labels'``: a class is seen in an image when the truth has it (labels are used for nothing else);
            ``'anchors'``: when the image gives the class anchors, as the host sees it.
        sizes: Numbers of pool images.
        at_least: Repetitions (2, 5, 10, as text: JSON has no other keys) -> for each size, the share (0 to 1) of the
            classes that are seen in at least so many images.
    """

    source: str
    sizes: tuple[int, ...]
    at_least: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class OverlapSplit:
    """A pool chosen by its labels, which nothing else may see. Its scores are those of the variant of the same key.

    Args:
        key: ``'high'``, ``'random'`` or ``'low'``.
        overlap: Similarity (0 to 1) of pool and evaluation images in how often each class occurs: the sum over classes
            of the smaller share of images that have it, divided by the sum of the larger.
        classes_shared: Share (0 to 1) of the evaluation images' classes that occur in the pool.
        pool_images: Size of the pool.
        evaluation_images: Images scored, the same for all splits and none of them in a pool.
    """

    key: str
    overlap: float
    classes_shared: float
    pool_images: int
    evaluation_images: int


@dataclass(frozen=True)
class Timing:
    """Milliseconds per image over ``repeats`` measurements after a warm-up.

    Args:
        median: The middle one.
        low: Lower quartile.
        high: Upper quartile.
        repeats: How many.
    """

    median: float
    low: float
    high: float
    repeats: int


@dataclass(frozen=True)
class Cost:
    """What TPA costs beside the host, in the paper's columns and a few more.

    Args:
        columns: Name -> time: ``clip`` (one pass of CLIP's visual tower over the image), ``host`` (all of the host),
            ``encoder``, ``total`` (host and encoder), ``bank_encoder_pass``, ``bank_update``, ``feature_transfer``,
            ``lookup``, ``decode`` (labels of the host and of TPA).
        bank_mb: Size of the bank.
        cache_mb_per_image: Size of an image's features in half precision; the median of the images.
        image_size: Height and width of the network's input, the medians of the images.
        num_classes: Classes there are.
        device: Name of the GPU or CPU that was measured.
        image_sizes: Those of the smallest and of the largest image.
        cache_mb_range: The smallest and the largest of the caches.
    """

    columns: dict[str, Timing]
    bank_mb: float
    cache_mb_per_image: float
    image_size: tuple[int, int]
    num_classes: int
    device: str
    image_sizes: tuple[tuple[int, int], ...] = ()
    cache_mb_range: tuple[float, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A PNG in the run's folder.

    Args:
        file: Path relative to the run's folder, such as ``'pictures/best-1-comparison.png'``.
        kind: ``'comparison'`` (input, truth, host, TPA, difference) or ``'anchors'``.
        choice: Why this image: ``'best'``, ``'typical'`` or ``'worst'`` change of accuracy by TPA.
        image: Name of the image.
        caption: A sentence for people.
        gain: Change of the share of right pixels in percentage points.
    """

    file: str
    kind: str
    choice: str
    image: str
    caption: str
    gain: float | None


@dataclass(frozen=True)
class RunResult:
    """All of ``results.json``.

    Args:
        experiment: Name of the experiment.
        suite: ``'paper'`` or ``'miniature'``.
        run: Name of the run, which is its folder's.
        config: The config file, relative to the folder of configs.
        images: Images that were scored (or measured).
        seconds: How long the pass over them took; without loading models.
        startup_seconds: Loading models and building banks.
        device: Name of the GPU or CPU.
        host: Scores of the host alone; None in experiments that score nothing (repetition, cost).
        variants: TPA in each setting, in the order of the experiment.
        repetition: Of the experiment ``repetition``.
        overlap: Of the experiment ``overlap``.
        cost: Of the experiment ``cost``.
        pictures: Of the experiment ``pictures``.
        cfg_options: Settings of the command line that it was made with.
        schema: Version of this layout.
    """

    experiment: str
    suite: str
    run: str
    config: str
    images: int
    seconds: float
    startup_seconds: float
    device: str
    host: Scores | None = None
    variants: tuple[VariantResult, ...] = ()
    repetition: tuple[RepetitionCurve, ...] = ()
    overlap: tuple[OverlapSplit, ...] = ()
    cost: Cost | None = None
    pictures: tuple[Picture, ...] = ()
    cfg_options: dict = field(default_factory=dict)
    schema: int = field(default=SCHEMA)

    def variant(self, key: str) -> VariantResult | None:
        """The variant of a key, or None where the run does not have it."""
        return next((variant for variant in self.variants if variant.key == key), None)

    def made_with(self, cfg_options: dict) -> bool:
        """Whether settings of the command line would give the same result. What only changes the speed may differ."""
        return _that_matter(self.cfg_options) == _that_matter(cfg_options)

    def save(self, path: Path) -> None:
        """Writes the file so that it is either complete or not there."""
        write_json(path, asdict(self))

    @classmethod
    def load(cls, path: Path) -> RunResult:
        """Reads what :meth:`save` wrote. Raises TPAError for a file that is damaged or of another version."""
        try:
            return _restore(cls, json.loads(path.read_text(encoding='utf-8')))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise TPAError(f'{path} is not a readable result ({error}): delete it and run again.') from error


def _that_matter(cfg_options: dict) -> dict:
    """Settings that a result depends on, as JSON has them."""
    settings = json.loads(json.dumps(cfg_options))
    return {key: value for key, value in settings.items() if key.rpartition('.')[2] not in _ONLY_SPEED}


def _restore(kind, value):
    """A value of JSON as the type that a field is declared with."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _restore(next(part for part in parts if part is not type(None)), value)
    if origin is tuple:
        return tuple(_restore(parts[0], item) for item in value)
    if origin is dict:
        return {key: _restore(parts[1], item) for key, item in value.items()}
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        if kind is RunResult and value['schema'] != SCHEMA:
            raise ValueError(f'schema {value["schema"]}, but this version reads {SCHEMA}')
        return kind(**{name: _restore(hints[name], item) for name, item in value.items()})
    return value
