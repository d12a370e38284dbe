"""What a finished run leaves in its ``results.json``: one schema for all experiments, with sections that may be empty.

Scores are percent with two decimals, as :class:`~tpa_mmseg.evaluation.HostTPAMetric` gives them. What has no value (the
IoU of a class that never occurs) is None, never a number. Results are exchanged, so a file is trusted in nothing:
pydantic checks every type and range.
"""

from __future__ import annotations

import json
import math
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ..engine.provenance import STRICT, Count, Provenance, Seconds, Text
from ..errors import TPAError
from ..io import atomic_write

# Last parts of settings that no result depends on.
_ONLY_SPEED = ('num_workers', 'persistent_workers', 'pin_memory', 'prefetch_factor')
# A result of 200 classes in 20 settings has about 1 MB.
_LARGEST = 64 << 20


def _known(value: object) -> object:
    """NaN, which JSON does not have, is written as null."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _json(options: dict) -> dict:
    """Raises ValueError for infinities, which JSON does not have either."""
    return json.loads(json.dumps(options, allow_nan=False))


Percent = Annotated[Annotated[float, Field(ge=-100, le=100)] | None, BeforeValidator(_known)]
Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, le=1e9)]
Value = Annotated[float, Field(ge=-1e9, le=1e9)]
Times = Annotated[str, Field(pattern=r'^[0-9]{1,6}$')]
#: Only from the folder of the run's own pictures: a page shows what it names.
PictureFile = Annotated[str, Field(pattern=r'^pictures/[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.png$')]


@dataclass(frozen=True, config=STRICT)
class Scores:
    """Percent; as differences, percentage points."""

    aAcc: Percent
    mIoU: Percent
    mAcc: Percent


@dataclass(frozen=True, config=STRICT)
class ClassScore:
    """One class of one variant.

    Args:
        name: The class.
        host_iou: IoU of the host alone.
        tpa_iou: IoU with TPA.
        gain: Their difference.
        support: Pixels of the class in the truth.
        anchors: Anchors of the class in the bank; None where there is no bank (per-image prototypes).
        images: Test images that have the class.
    """

    name: Text
    host_iou: Percent
    tpa_iou: Percent
    gain: Percent
    support: Count
    anchors: Count | None = None
    images: Count | None = None


@dataclass(frozen=True, config=STRICT)
class BankInfo:
    """The bank that a variant was scored with.

    Args:
        images: Pool images folded in.
        classes_covered: Classes that have a prototype.
        num_classes: Classes there are.
        anchors: Anchors of all classes.
        bytes: Size of sums and counts.
        dim: Width of the features.
        diagnosis: ``kappa_0``, ``kappa_inf``, ``rho``, ``unit`` and ``beta2`` of consistent TPA; empty without it.
    """

    images: Count
    classes_covered: Count
    num_classes: Count
    anchors: Count
    bytes: Count
    dim: Count = 0
    diagnosis: dict[Text, Value] = field(default_factory=dict)

    @property
    def percent_covered(self) -> float:
        """Classes that have a prototype, in percent of all."""
        return 100 * self.classes_covered / max(1, self.num_classes)


@dataclass(frozen=True, config=STRICT)
class VariantResult:
    """TPA in one setting, scored in the same pass as the others of its run.

    Args:
        key: Key of the :class:`~tpa_mmseg.reproduce.runs.Setting`, such as ``'full'`` or ``'k-1.5'``.
        value: What an axis of a plot shows: k, the share of the test images, the overlap. None where there is no axis.
        tpa: Scores with TPA.
        gain: Gain over the host.
        per_class: Every class, in the dataset's order.
        bank: None for per-image prototypes.
    """

    key: Text
    value: Value | None
    tpa: Scores
    gain: Scores
    per_class: tuple[ClassScore, ...]
    bank: BankInfo | None = None


@dataclass(frozen=True, config=STRICT)
class RepetitionCurve:
    """How often classes repeat in pools of growing size.

    Args:
        source: ``'labels'``: a class is seen in an image when the truth has it; no network sees the images.
        sizes: Numbers of pool images.
        at_least: Repetitions (1, 2, 5, 10, as text: JSON has no other keys) -> for each size, the share (0 to 1) of the
            classes that are seen in at least so many images, the mean of all draws.
        num_classes: Classes there are.
        draws: Pools that were drawn, each of which grows image by image.
    """

    source: Text
    sizes: tuple[Count, ...]
    at_least: dict[Times, tuple[Share, ...]]
    num_classes: Count = 0
    draws: Count = 1


@dataclass(frozen=True, config=STRICT)
class OverlapSplit:
    """A pool chosen by its labels, which nothing else may see. Its scores are those of the variant of the same key.

    Args:
        key: ``'high'``, ``'random'`` or ``'low'``.
        overlap: Similarity (0 to 1) of pool and evaluation images in how often each class occurs: the sum over classes
            of the smaller share of images that have it, divided by the sum of the larger.
        classes_shared: Share (0 to 1) of the evaluation images' classes that occur in the pool.
        pool_images: Size of the pool.
        evaluation_images: Images scored, the same for all splits and none of them in a pool.
        shared: Names of the evaluation images' classes that occur in the pool.
    """

    key: Text
    overlap: Share
    classes_shared: Share
    pool_images: Count
    evaluation_images: Count
    shared: tuple[Text, ...] = ()


@dataclass(frozen=True, config=STRICT)
class Timing:
    """Milliseconds per image over ``repeats`` measurements after a warm-up.

    Args:
        median: The middle one.
        low: Lower quartile.
        high: Upper quartile.
        repeats: How many.
    """

    median: Amount
    low: Amount
    high: Amount
    repeats: Count


@dataclass(frozen=True, config=STRICT)
class Cost:
    """What TPA costs beside the host, in the paper's columns and a few more.

    Args:
        columns: Name -> time: ``clip`` (one pass of CLIP's visual tower over the image), ``host`` (all of the host),
            ``encoder``, ``total`` (host and encoder), ``bank_encoder_pass``, ``bank_update``, ``feature_transfer`` (of
            cached half-precision features from the CPU to the GPU; absent without a GPU), ``lookup``, ``decode``
            (labels of the host and of TPA).
        bank_mb: Size of the bank's file.
        cache_mb_per_image: Size of an image's features in half precision; the median of the images.
        image_size: Height and width of the network's input, the medians of the images.
        num_classes: Classes there are.
        device: Name of the GPU or CPU that was measured.
        image_sizes: Those of the smallest and of the largest image.
        cache_mb_range: The smallest and the largest of the caches.
        prototypes_kb: Size of the prototypes in half precision, C x D x 2 bytes, which is what the paper counts.
    """

    columns: dict[Text, Timing]
    bank_mb: Amount
    cache_mb_per_image: Amount
    image_size: tuple[Count, Count]
    num_classes: Count
    device: Text
    image_sizes: tuple[tuple[Count, Count], ...] = ()
    cache_mb_range: tuple[Amount, ...] = ()
    prototypes_kb: Amount | None = None


@dataclass(frozen=True, config=STRICT)
class Picture:
    """A PNG in the run's folder.

    Args:
        file: Path relative to the run's folder, such as ``'pictures/best-1-comparison.png'``.
        kind: ``'comparison'`` (input, truth, host, TPA, difference), ``'anchors'``, or ``'host'`` and ``'tpa'``, the
            labels alone, for a slider.
        choice: Why this image: ``'best'``, ``'typical'`` or ``'worst'`` change of its mIoU by TPA, or anchors of the
            ``'most'`` classes.
        image: Name of the image.
        caption: A sentence for people.
        gain: Change of the mean IoU of the classes that the image has, in percentage points; None of anchors.
    """

    file: PictureFile
    kind: Text
    choice: Text
    image: Text
    caption: Text
    gain: Percent


@dataclass(frozen=True, config=STRICT)
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
        provenance: Commit, versions, machine, digests, the complete config.
        host: Scores of the host alone; None in experiments that score nothing (repetition, cost).
        variants: TPA in each setting, in the order of the experiment.
        repetition: Of the experiment ``repetition``.
        overlap: Of the experiment ``overlap``.
        cost: Of the experiment ``cost``.
        pictures: Of the experiments ``pictures`` and ``anchors``.
        cfg_options: Settings of the command line that it was made with.
        schema: Version of this layout.
    """

    experiment: Text
    suite: Text
    run: Text
    config: Text
    images: Count
    seconds: Seconds
    startup_seconds: Seconds
    provenance: Provenance
    host: Scores | None = None
    variants: tuple[VariantResult, ...] = ()
    repetition: tuple[RepetitionCurve, ...] = ()
    overlap: tuple[OverlapSplit, ...] = ()
    cost: Cost | None = None
    pictures: tuple[Picture, ...] = ()
    cfg_options: Annotated[dict[str, JsonValue], AfterValidator(_json)] = field(default_factory=dict)
    schema: Literal[3] = 3

    def variant(self, key: str) -> VariantResult | None:
        """The variant of a key, or None where the run does not have it."""
        return next((variant for variant in self.variants if variant.key == key), None)

    def made_with(self, cfg_options: dict) -> bool:
        """Whether settings of the command line would give the same result. What only changes the speed may differ."""
        return _that_matter(self.cfg_options) == _that_matter(cfg_options)

    def to_json(self, indent: int | None = None) -> bytes:
        """Returns the content of the file."""
        return _ADAPTER.dump_json(self, indent=indent)

    def save(self, path: Path) -> None:
        """Writes the file so that it is either complete or not there."""
        with atomic_write(path) as file:
            file.write(self.to_json(indent=2) + b'\n')

    @classmethod
    def load(cls, path: Path) -> RunResult:
        """Reads what :meth:`save` wrote. Raises TPAError for a file that is damaged or of another version."""
        return cls.parse(read_limited(path, _LARGEST), str(path))

    @classmethod
    def parse(cls, content: str | bytes, place: str) -> RunResult:
        """Reads what :meth:`to_json` returned. Args: place: where it is, for the message."""
        try:
            return _ADAPTER.validate_json(content)
        except ValidationError as error:
            raise TPAError(f'{place} is not a readable result ({_reason(error)}): delete it and run again.') from error


_ADAPTER = TypeAdapter(RunResult)


def read_limited(path: Path, largest: int) -> bytes:
    """Returns the content of a file. Raises TPAError if it cannot be read or is larger than any of its kind."""
    try:
        with path.open('rb') as file:
            content = file.read(largest + 1)
    except OSError as error:
        raise TPAError(f'{path} cannot be read ({error.strerror}): check the path.') from error
    if len(content) > largest:
        raise TPAError(f'{path} is not a readable result (more than {largest >> 20} MB): delete it and run again.')
    return content


def _reason(error: ValidationError) -> str:
    """The first wrong field in a few words; another version is the reason of everything else."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    first = next((one for one in found if one['loc'] == ('schema',)), found[0])
    place = '.'.join(str(part) for part in first['loc'])[:200]
    return TypeAdapter(Text).validate_python(f'{place}: {first["msg"]}' if place else first['msg'])


def _that_matter(cfg_options: dict) -> dict:
    """Settings that a result depends on, as JSON has them."""
    settings = json.loads(json.dumps(cfg_options))
    return {key: value for key, value in settings.items() if key.rpartition('.')[2] not in _ONLY_SPEED}
