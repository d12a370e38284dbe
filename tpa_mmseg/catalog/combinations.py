"""What can be tested: a host, perhaps with a variant, a backbone and a benchmark. Each combination is a config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import TPAError
from .entries import Backbone, Benchmark, Dataset, Encoder, Host, Row, SuitePlan, Variant, WeightsFile

#: The configs: in a checkout a link to ``configs/``, in an installed package a folder.
CONFIGS = (Path(__file__).parents[1] / '.mim' / 'configs').resolve()


@dataclass(frozen=True)
class Combination:
    """One config. Args: host; variant, None for the host itself; backbone; benchmark."""

    host: Host
    variant: Variant | None
    backbone: Backbone
    benchmark: Benchmark

    @property
    def row(self) -> Row:
        """Everything but the benchmark."""
        return Row(self.host.name, self.variant.name if self.variant else '', self.backbone.name)

    @property
    def stem(self) -> str:
        """Name of the config: ``<host>[-<variant>]_<backbone>_<benchmark>``."""
        suffix = self.benchmark.name if self.benchmark.suffix is None else self.benchmark.suffix
        return f'{self.row}_{suffix}' if suffix else str(self.row)

    @property
    def file(self) -> str:
        """The config, relative to the folder of configs."""
        return f'{self.benchmark.folder or self.host.name}/{self.stem}.py'

    @property
    def title(self) -> str:
        """The row for people."""
        return f'{self.host.title}{self.variant.title if self.variant else ""}, {self.backbone.title}'


@dataclass(frozen=True)
class Catalog:
    """Every name once.

    Args:
        hosts, variants, backbones, datasets, benchmarks, encoders, weights, suites: Name -> entry.
        folders: Where configs are: the package's own, then those of users.
    """

    hosts: Mapping[str, Host]
    variants: Mapping[str, Variant]
    backbones: Mapping[str, Backbone]
    datasets: Mapping[str, Dataset]
    benchmarks: Mapping[str, Benchmark]
    encoders: Mapping[str, Encoder]
    weights: Mapping[str, WeightsFile]
    suites: Mapping[str, SuitePlan]
    folders: tuple[Path, ...] = (CONFIGS,)

    def combinations(self, suite: str | None = None) -> Iterator[Combination]:
        """All combinations (of a suite) in the order of tables: by host, variant, backbone and benchmark."""
        for host in self.hosts.values():
            for variant in ('', *(name for name in self.variants if name in host.variants)):
                for backbone in self.backbones:
                    for benchmark in self.benchmarks.values():
                        found = self.find(Row(host.name, variant, backbone), benchmark.name)
                        if found is not None and suite in (None, benchmark.suite):
                            yield found

    def find(self, row: Row, benchmark: str) -> Combination | None:
        """A combination, or None where the catalog does not have it."""
        host, backbone = self.hosts.get(row.host), self.backbones.get(row.backbone)
        place = self.benchmarks.get(benchmark)
        if host is None or backbone is None or place is None or backbone.suite != place.suite:
            return None
        if not row.variant:
            there = benchmark in host.rows and row.backbone in host.rows[benchmark].get('backbones', host.backbones)
            return Combination(host, None, backbone, place) if there else None
        variant = host.variants.get(row.variant, {}).get(row.backbone)
        if variant is None or not place.variants:
            return None
        if variant.base is None:
            there = self.find(row._replace(variant=variant.of), benchmark) is not None
        else:
            there = benchmark in self.rows_of(host, variant)
        return Combination(host, variant, backbone, place) if there else None

    def rows_of(self, host: Host, variant: Variant | None) -> Mapping[str, Mapping]:
        """Benchmark -> settings of a host, or of a variant that has a base config of its own."""
        if variant is None or variant.base is None:
            return host.rows
        return self.hosts[variant.like].rows if variant.like else variant.rows

    def config(self, row: Row, benchmark: str) -> Path:
        """The config of a combination. Raises TPAError where the catalog does not have it."""
        found = self.find(row, benchmark)
        if found is None:
            raise TPAError(f'No config for {row} on {benchmark}. See configs/README.md for those that exist.')
        paths = [folder / found.file for folder in self.folders]
        return next((path for path in paths if path.is_file()), paths[0])
