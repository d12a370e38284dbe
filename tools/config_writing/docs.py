"""The tables of the docs that list the catalog, between the marks ``<!-- name -->`` and ``<!-- end of name -->``."""

from __future__ import annotations

import re
from pathlib import Path

from tpa_mmseg.catalog import Catalog

from .index import ROOT, SUITE
from .options import CLASSES, option_rows

_DOCS = ROOT / 'docs'


def docs_texts(catalog: Catalog) -> dict[Path, str]:
    """Path -> text of the pages with their tables filled in."""
    tables = {
        'configs.md': {'names': _names(catalog), 'variants': _variants(catalog)},
        'data.md': {'weights': _weights(catalog)},
        'options.md': {
            name: _table(('option', 'values', 'default', 'meaning'), option_rows(kind))
            for name, kind in CLASSES.items()
        },
        'references.md': {'papers': _papers(catalog), 'licenses': _licenses(catalog)},
    }
    return {_DOCS / page: _fill((_DOCS / page).read_text(encoding='utf-8'), found) for page, found in tables.items()}


def _fill(text: str, tables: dict[str, str]) -> str:
    for name, table in tables.items():
        begin, end = f'<!-- {name} -->', f'<!-- end of {name} -->'
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f'The page needs the marks {begin} and {end}, once each.')
        text = re.sub(f'{begin}.*?{end}', lambda _, t=f'{begin}\n{table}{end}': t, text, flags=re.DOTALL)
    return text


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return ''.join(f'| {" | ".join(row)} |\n' for row in (columns, ('---',) * len(columns), *rows))


def _code(names) -> str:
    return ', '.join(f'`{name}`' for name in names)


def _names(catalog: Catalog) -> str:
    parts = {
        'host': dict.fromkeys(c.host.name for c in catalog.combinations(SUITE)),
        'backbone': [name for name, entry in catalog.backbones.items() if entry.suite == SUITE],
        'benchmark': [name for name, entry in catalog.benchmarks.items() if entry.suite == SUITE],
    }
    return _table(('part of the name', 'values'), [(part, _code(names)) for part, names in parts.items()])


def _variants(catalog: Catalog) -> str:
    rows = []
    for variant in catalog.variants.values():
        hosts = [host.name for host in catalog.hosts.values() if variant.name in host.variants]
        rows.append((f'`-{variant.name}`', f'host{variant.title}', _code(hosts)))
    return _table(('variant', 'title in tables', 'hosts'), rows)


def _papers(catalog: Catalog) -> str:
    papers = {host.title: host.paper for host in catalog.hosts.values() if host.paper}
    return _table(('host', 'paper'), [(title, f'[{each["title"]}]({each["url"]})') for title, each in papers.items()])


def _licenses(catalog: Catalog) -> str:
    return _table(('weights', 'license'), [(file.title, file.license) for file in catalog.weights.values()])


def _weights(catalog: Catalog) -> str:
    rows = [
        (
            file.title,
            f'`{file.name}{Path(file.url).suffix if file.url else ".safetensors"}`',
            f'{file.megabytes} MB' if file.megabytes < 1000 else f'{file.megabytes / 1000:.1f} GB',
            file.license,
        )
        for file in catalog.weights.values()
    ]
    return _table(('model', 'file in the weights folder', 'size', 'license'), rows)
