"""The leaf configs: one file of a few lines for each combination of the catalog."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tpa_mmseg.catalog import CONFIGS, Backbone, Catalog, Combination, Row

from .literals import assignment

_BASES = CONFIGS / '_base_'
_PIPELINE = {'dataset': {'pipeline': '_base_.test_pipeline'}}


class Leaves:
    """Writes leaves. Each states only what differs from the config that it builds on.

    Args:
        catalog: Where the combinations are.
        known: The package's own catalog, whose leaves are in the package's folder of configs.
        out: Folder of the other leaves; None to write those of the package.
    """

    def __init__(self, catalog: Catalog, known: Catalog | None = None, out: Path | None = None) -> None:
        self.catalog, self.out = catalog, out
        self._known = {c.file for c in known.combinations()} if known else set()

    def generate(self) -> dict[Path, str]:
        """Path -> text of every leaf that is to be written."""
        found = (c for c in self.catalog.combinations() if c.file not in self._known)
        return {self.path(combination): self.text(combination) for combination in found}

    def path(self, combination: Combination) -> Path:
        """Where a leaf is."""
        folder = CONFIGS if self.out is None or combination.file in self._known else self.out
        return folder / combination.file

    def text(self, combination: Combination) -> str:
        """The source of a leaf."""
        folder = self.path(combination).parent
        bases, model, loader = self._parts(combination)
        paths = [Path(os.path.relpath(base, folder)).as_posix() for base in bases]
        if len(paths) > 2:
            base = '[\n' + ''.join(f'    {path!r},\n' for path in paths) + ']'
        else:
            base = repr(paths if len(paths) > 1 else paths[0])
        lines = [f'"""{_describe(combination)}"""\n', f'_base_ = {base}', assignment('model', model, folder)]
        lines += [assignment('test_dataloader', loader, folder)] if loader else []
        return '\n'.join(lines) + '\n'

    def _parts(self, c: Combination) -> tuple[list[Path], dict, dict]:
        """Base configs, changes of ``model`` and of ``test_dataloader``."""
        if c.variant is not None and c.variant.base is None:
            return self._derived_variant(c)
        parent = self._first_backbone(c)
        if parent is not None:
            return [self.path(parent)], {'host': self._backbone(c.backbone)}, {}
        if c.benchmark.of:
            settings = {**c.benchmark.settings, **_settings(c.host.rows[c.benchmark.name])}
            return [self._leaf(c.row, c.benchmark.of)], {**c.benchmark.model, 'host': settings}, c.benchmark.loader
        return self._whole(c)

    def _derived_variant(self, c: Combination) -> tuple[list[Path], dict, dict]:
        variant, name = c.variant, c.benchmark.name
        bases = [self._leaf(c.row._replace(variant=variant.of), name), *(_base('', base) for base in variant.bases)]
        host = self._variant_settings(c)
        if variant.around:
            host = {'_delete_': True, 'type': '', 'host': '_base_.model.host', **variant.around, **host}
        return bases, {'host': host}, {**variant.loader}

    def _whole(self, c: Combination) -> tuple[list[Path], dict, dict]:
        """A leaf that joins a host, a benchmark and a pipeline."""
        benchmark, variant = c.benchmark, c.variant
        row = self.catalog.rows_of(c.host, variant)[benchmark.name]
        shared = c.host
        if variant is not None:
            shared = self.catalog.hosts[variant.like] if variant.like else variant
        pipeline = row.get('pipeline') or benchmark.pipeline or shared.pipeline
        more = (*benchmark.bases, *(variant.bases if variant else ()))
        bases = [
            _base('hosts', variant.base if variant else c.host.base),
            _base('datasets', benchmark.base),
            _base('pipelines', pipeline),
            *(_base('', base) for base in more),
        ]
        backbone = {} if c.backbone.in_base and self.out is None else self._backbone(c.backbone)
        host = {**backbone, **benchmark.settings, **_settings(row), **(self._variant_settings(c) if variant else {})}
        host = {key: value for key, value in host.items() if value is not None}
        return bases, {**benchmark.model, 'host': host}, {**_PIPELINE, **benchmark.loader}

    def _variant_settings(self, c: Combination) -> dict[str, Any]:
        variant, name = c.variant, c.benchmark.name
        proxy = {'proxy': self.catalog.encoders[variant.proxy].encoder} if variant.proxy else {}
        settings = {**proxy, **variant.settings, **(variant.rows.get(name, {}) if variant.base is None else {})}
        return {
            key: value.format(benchmark=name) if isinstance(value, str) else value for key, value in settings.items()
        }

    def _backbone(self, backbone: Backbone) -> dict[str, Any]:
        """Changes of ``model.host``. A base config of the package has its own backbones as variables."""
        clip = backbone.clip
        if isinstance(clip, dict) and self.out is None:
            clip = f'_base_.backbones.{variable(backbone)}'
        return {**({} if clip is None else {'clip': clip}), **backbone.settings}

    def _first_backbone(self, c: Combination) -> Combination | None:
        """The same with the first backbone of the suite, which has the settings; None for that one itself."""
        names = (name for name, backbone in self.catalog.backbones.items() if backbone.suite == c.backbone.suite)
        found = (self.catalog.find(c.row._replace(backbone=name), c.benchmark.name) for name in names)
        first = next(combination for combination in found if combination is not None)
        return None if first.backbone is c.backbone else first

    def _leaf(self, row: Row, benchmark: str) -> Path:
        return self.path(self.catalog.find(row, benchmark))


def backbones_text(catalog: Catalog) -> str:
    """The source of ``configs/_base_/backbones.py``, from which the base configs of hosts take theirs."""
    lines = [
        f'    {variable(backbone)}=dict({", ".join(f"{key}={value!r}" for key, value in backbone.clip.items())}),\n'
        for backbone in catalog.backbones.values()
        if isinstance(backbone.clip, dict)
    ]
    return f'"""The CLIP models of the paper, for ``model.host.clip``."""\n\nbackbones = dict(\n{"".join(lines)})\n'


def variable(backbone: Backbone) -> str:
    """Name of a backbone in ``configs/_base_/backbones.py``."""
    return backbone.name.replace('-', '_')


def _describe(c: Combination) -> str:
    title = f'{c.host.title}{c.variant.title if c.variant else ""}'
    clip = '' if c.backbone.clip is None else 'CLIP '
    return f'{title} with {clip}{c.backbone.title} on {c.benchmark.title}.'


def _settings(row: dict) -> dict:
    return {key: value for key, value in row.items() if key not in ('pipeline', 'backbones')}


def _base(kind: str, name: str) -> Path:
    """A base config: a name in a folder of ``configs/_base_``, or a path."""
    return Path(name) if name.endswith('.py') else _BASES / kind / f'{name}.py'
