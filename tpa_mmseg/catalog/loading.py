"""Reading the catalog: the package's own YAML files, and those of a user."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from ..errors import TPAError
from .combinations import CONFIGS, Catalog
from .entries import Backbone, Benchmark, Dataset, Encoder, Host, Row, SuitePlan, Variant, WeightsFile

#: Entry points of this group name a YAML file beside a module: ``mine = "my_package:catalog.yaml"``.
GROUP = 'tpa_mmseg.catalog'
_OWN = tuple(sorted(Path(__file__).parent.glob('*.yaml')))
_KINDS = {
    'hosts': Host,
    'variants': Variant,
    'backbones': Backbone,
    'datasets': Dataset,
    'benchmarks': Benchmark,
    'encoders': Encoder,
    'weights': WeightsFile,
    'suites': SuitePlan,
}
_FOLDER = 'configs'
_ROWS = ('ablation', 'growth', 'vfm', 'composition', 'cost', 'consistency', 'pictures', 'anchors', 'comparisons')
_added: list[Path] = []


def add(file: str | Path) -> None:
    """Adds a YAML file to what :func:`load` returns from now on."""
    _added.append(Path(file))
    load.cache_clear()


@cache
def load(*files: str | Path) -> Catalog:
    """Reads the package's catalog with that of installed packages, of :func:`add` and of further files.

    A file has the sections of the package's own. An entry that exists is changed, key by key; others are new. Paths of
    base configs are relative to the file, and so is ``configs``, the folder of its own configs.
    """
    return read(*_OWN, *_installed(), *_added, *map(Path, files))


@cache
def shipped() -> Catalog:
    """Reads the package's own catalog alone."""
    return read(*_OWN)


def weights(name: str) -> WeightsFile:
    """The entry of a weights file; of one that is not in the catalog, an entry without size and license."""
    return load().weights.get(name) or WeightsFile(name)


def sam_weights(model: str) -> WeightsFile | None:
    """The entry of a SAM as its authors published it, ``'vit_b'``, ``'vit_l'`` or ``'vit_h'``; None of others."""
    return next((file for file in load().weights.values() if file.sam == model), None)


def read(*files: Path) -> Catalog:
    """Reads files, later ones over earlier ones."""
    sections: dict[str, dict] = {}
    folders = [CONFIGS]
    for file in files:
        content = _content(file)
        folders += [file.parent.resolve() / content.pop(_FOLDER)] if _FOLDER in content else []
        _merge(sections, content)
    found = {section: _entries(section, sections.get(section, {})) for section in _KINDS}
    hosts = {name: _with_variants(host, found['variants']) for name, host in found['hosts'].items()}
    return Catalog(**{**found, 'hosts': hosts}, folders=tuple(folders))


def _installed() -> Iterator[Path]:
    for point in entry_points(group=GROUP):
        spec = importlib.util.find_spec(point.module)
        if spec is None or spec.origin is None:
            raise TPAError(f'Entry point {point.name} of {GROUP}: no module {point.module}. Reinstall that package.')
        yield Path(spec.origin).parent / (point.attr or 'catalog.yaml')


def _content(file: Path) -> dict[str, dict]:
    try:
        content = yaml.safe_load(file.read_text(encoding='utf-8')) or {}
    except (OSError, yaml.YAMLError) as error:
        raise TPAError(f'Cannot read the catalog file {file} ({error}).') from error
    unknown = set(content) - {*_KINDS, _FOLDER}
    if unknown:
        raise TPAError(f'Unknown section {unknown.pop()!r} in {file}. Sections: {", ".join(_KINDS)}, {_FOLDER}.')
    return _with_paths(content, file.parent)


def _with_paths(value: Any, folder: Path) -> Any:
    """Makes paths of base configs and lists of class names beside a catalog file absolute."""
    if isinstance(value, dict):
        return {key: _with_paths(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_with_paths(item, folder) for item in value)
    if isinstance(value, str) and value.endswith(('.py', '.txt')) and (folder / value).is_file():
        return str(folder.resolve() / value)
    return value


def _merge(old: dict, new: Mapping) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            _merge(old[key], value)
        else:
            old[key] = value


def _entries(section: str, content: Mapping[str, Mapping]) -> dict[str, Any]:
    return {str(name): _entry(section, str(name), entry) for name, entry in content.items()}


def _entry(section: str, name: str, entry: Mapping) -> Any:
    kind = _KINDS[section]
    known = [each.name for each in fields(kind) if each.name != 'name']
    for key in entry:
        if key not in known:
            raise TPAError(f'Unknown key {key!r} in {section}.{name} of the catalog. Keys: {", ".join(known)}.')
    values = dict(entry)
    if section == 'suites':
        values |= {key: _rows(values[key]) for key in _ROWS if key in values}
    if section in ('hosts', 'benchmarks'):
        values.setdefault('base', name)
    if section == 'benchmarks' and 'settings' not in values:
        values['settings'] = {'class_names': name}
    try:
        return kind(name, **values)
    except TypeError as error:
        raise TPAError(f'Incomplete entry {section}.{name} of the catalog ({error}).') from error


def _rows(value: str | tuple[str, ...] | dict[str, tuple[str, ...]]) -> Row | tuple[Row, ...] | dict:
    if isinstance(value, dict):
        return {key: _rows(rows) for key, rows in value.items()}
    return Row.of(value) if isinstance(value, str) else tuple(map(Row.of, value))


def _with_variants(host: Host, variants: Mapping[str, Variant]) -> Host:
    """Gives a host its variants in full: a list of backbones, or backbone -> what differs from the variant."""
    resolved = {}
    for name, given in host.variants.items():
        if name not in variants:
            raise TPAError(f'Unknown variant {name!r} in hosts.{host.name} of the catalog. Add it to variants.')
        changes = given if isinstance(given, dict) else dict.fromkeys(given, {})
        resolved[name] = {backbone: replace(variants[name], **special) for backbone, special in changes.items()}
    return replace(host, variants=resolved)
