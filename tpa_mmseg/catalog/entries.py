"""The entries of the catalog: plain data, one dataclass per section of the YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: Changes of a part of a config. A string that starts with ``_base_.`` stands for a variable of the base configs.
Settings = Mapping[str, Any]


class Row(NamedTuple):
    """A row of a table, as names of configs start: ``<host>[-<variant>]_<backbone>``."""

    host: str
    variant: str
    backbone: str

    @classmethod
    def of(cls, text: str) -> Row:
        model, _, backbone = text.rpartition('_')
        host, _, variant = model.partition('-')
        return cls(host, variant, backbone)

    @property
    def model(self) -> str:
        """The host with its variant."""
        return f'{self.host}-{self.variant}' if self.variant else self.host

    def __str__(self) -> str:
        return f'{self.model}_{self.backbone}'


@dataclass(frozen=True)
class Variant:
    """A variant of a host: another encoder inside it, a plug-in, a wrapper, a protocol.

    Args:
        name: What follows the host's name in names of configs.
        title: Appended to the host's title.
        section: Section of configs/README.md: ``'proxy'``, ``'plugin'``, ``'protocol'`` or ``'baseline'``.
        of: The variant that it builds on; empty for the host itself.
        base: Another base config of the host: a name in ``configs/_base_/hosts``, or a path.
        like: The host whose rows (and pipeline) go with ``base``.
        bases: More base configs: names in ``configs/_base_``, or paths.
        pipeline: As in :class:`Host`, for ``base``.
        proxy: Key of the encoder inside the host.
        settings: Changes of ``model.host``, with ``{benchmark}`` for the benchmark's name.
        rows: Benchmark -> further changes of ``model.host``; with ``base``, the benchmarks that there are.
        around: Wrapper that goes around the host: its type and options.
        loader: Changes of ``test_dataloader``.
    """

    name: str
    title: str
    section: str = 'plugin'
    of: str = ''
    base: str | None = None
    like: str | None = None
    bases: tuple[str, ...] = ()
    pipeline: str | None = None
    proxy: str | None = None
    settings: Settings = field(default_factory=dict)
    rows: Mapping[str, Settings] = field(default_factory=dict)
    around: Settings = field(default_factory=dict)
    loader: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Host:
    """A host.

    Args:
        name: First part of names of configs.
        title: For people.
        type: Its registered class.
        backbones: Those that it is tested with.
        base: Its base config: a name in ``configs/_base_/hosts`` (default: ``name``), or a path.
        pipeline: Test pipeline of rows that name none: a name in ``configs/_base_/pipelines``, or a path.
        rows: Benchmark -> changes of ``model.host``, and ``pipeline`` and ``backbones`` where they differ.
        variants: Variant -> backbone -> the variant, with what is special about it.
        paper: Title and address (``url``) of its paper.
        like: The host whose settings serve for a user's images where this one has no configs of the paper's suite.
    """

    name: str
    title: str
    type: str
    backbones: tuple[str, ...]
    base: str = ''
    pipeline: str = ''
    rows: Mapping[str, Settings] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Variant]] = field(default_factory=dict)
    paper: Mapping[str, str] = field(default_factory=dict)
    like: str | None = None


@dataclass(frozen=True)
class Backbone:
    """The CLIP inside a host, or whatever takes its place.

    Args:
        name: Part of names of configs.
        title: For people.
        suite: The suite whose benchmarks it is tested on.
        clip: ``model.host.clip``; None for hosts without a CLIP.
        settings: Further changes of ``model.host``.
        in_base: Whether the base configs of hosts name it already.
    """

    name: str
    title: str
    suite: str = 'paper'
    clip: Settings | str | None = None
    settings: Settings = field(default_factory=dict)
    in_base: bool = False


@dataclass(frozen=True)
class Dataset:
    """Files on the disk.

    Args:
        name: Its key.
        title: For people.
        counts: Number of test images -> which list it is, the usual one first.
        layout: Where its files are once it is prepared, see :class:`~tpa_mmseg.prepare.layouts.Layout`.
    """

    name: str
    title: str
    counts: Mapping[int, str]
    layout: Mapping[str, Any] = field(default_factory=dict)

    @property
    def images(self) -> int:
        """Usual number of test images."""
        return next(iter(self.counts))


@dataclass(frozen=True)
class Benchmark:
    """A dataset with a list of classes.

    Args:
        name: Part of names of configs.
        title: For people.
        dataset: Key of its :class:`Dataset`.
        suite: The suite that it belongs to.
        base: Its base config: a name in ``configs/_base_/datasets`` (default: ``name``), or a path.
        bases: More base configs: names in ``configs/_base_``, or paths.
        pipeline: As in :class:`Host`, where it does not depend on the host.
        settings: Changes of ``model.host`` (default: the packaged class names of the benchmark's name).
        model: Changes of ``model``.
        loader: Changes of ``test_dataloader``.
        of: The benchmark whose configs it builds on.
        folder: Folder of its configs (default: the host's).
        suffix: Last part of names of its configs (default: ``name``).
        variants: Whether variants of hosts are tested on it.
    """

    name: str
    title: str
    dataset: str
    suite: str = 'paper'
    base: str = ''
    bases: tuple[str, ...] = ()
    pipeline: str | None = None
    settings: Settings = field(default_factory=dict)
    model: Settings = field(default_factory=dict)
    loader: Settings = field(default_factory=dict)
    of: str = ''
    folder: str | None = None
    suffix: str | None = None
    variants: bool = True


@dataclass(frozen=True)
class Encoder:
    """A frozen dense encoder. Args: name; title; encoder: ``model.encoder``, or a variable of the base configs."""

    name: str
    title: str
    encoder: Settings | str


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights.

    Args:
        name: Its name without a suffix, as it is looked for in the weights folder.
        title: Its model, for people.
        megabytes: Its size; None where it is not known.
        license: Short name of its license; empty where it is not known.
        url: Its address, where the libraries do not know it.
        sha256: Checksum of the file at that address.
        sam: Which SAM it is, as ``model.host.sam.model`` calls it.
    """

    name: str
    title: str = ''
    megabytes: int | None = None
    license: str = ''
    url: str | None = None
    sha256: str = ''
    sam: str | None = None


@dataclass(frozen=True)
class SuitePlan:
    """What the experiments are about, beside the main table, which has every host with every backbone of the suite.

    Args:
        name: ``'paper'``, ``'miniature'``, or that of a user.
        title: For people.
        ablation: Row of ``components``, ``k``, ``extractor`` and ``overlap``.
        ablation_benchmarks: The benchmarks of most of them.
        growth: Row of ``bank-size`` and ``repetition``.
        vfm: Rows with other encoders inside the host.
        extractors: Key in results -> key of an encoder of the bank.
        composition: Rows with and without plug-ins.
        cost: Rows of ``cost``.
        consistency: Rows of ``consistency`` beside those of the main table.
        pictures: Rows of ``pictures``.
        picture_benchmarks: Their benchmarks.
        anchors: Row of ``anchors``.
        classes: Row -> benchmark whose classes are shown against their test images.
        comparisons: Experiment -> rows of its table that are not TPA's: hosts with another method.
        own_images: ``backbone``, and the benchmarks whose settings serve for a user's classes, ``plain`` and with a
            ``background``.
    """

    name: str
    title: str
    ablation: Row
    ablation_benchmarks: tuple[str, ...]
    growth: Row
    vfm: tuple[Row, ...] = ()
    extractors: Mapping[str, str] = field(default_factory=dict)
    composition: tuple[Row, ...] = ()
    cost: tuple[Row, ...] = ()
    consistency: tuple[Row, ...] = ()
    pictures: tuple[Row, ...] = ()
    picture_benchmarks: tuple[str, ...] = ()
    anchors: Row | None = None
    classes: Mapping[str, str] = field(default_factory=dict)
    comparisons: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    own_images: Mapping[str, str] = field(default_factory=dict)
