"""Writes configs, their index and tables of the docs from the catalog, for ``tools/config_index.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tpa_mmseg import catalog
from tpa_mmseg.catalog import CONFIGS

from .docs import docs_texts
from .index import ROOT, index_texts
from .leaves import Leaves, backbones_text

__all__ = ['Leaves', 'generate', 'left_over', 'shown', 'stale']

# Configs that are not regular, and are written by hand.
_BY_HAND = {CONFIGS / 'miniature' / 'fcn_mini.py'}


def generate(out: Path | None = None, files: Sequence[Path] = ()) -> dict[Path, str]:
    """Path -> text of all files that are generated.

    Args:
        out: Folder for the configs of a user's entries; None for the files of the package.
        files: YAML files with such entries, beside those of installed packages.
    """
    own = catalog.shipped()
    if out is not None:
        return Leaves(catalog.load(*files), own, out.resolve()).generate()
    return {
        **Leaves(own).generate(),
        CONFIGS / '_base_' / 'backbones.py': backbones_text(own),
        **index_texts(own),
        **docs_texts(own),
    }


def stale(texts: dict[Path, str]) -> list[Path]:
    """Files whose text differs, or that do not exist."""
    return [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding='utf-8') != text]


def left_over(texts: dict[Path, str]) -> list[Path]:
    """Configs beside the generated ones that the catalog does not have."""
    folders = {path.parent for path in texts if path.suffix == '.py' and path.parent.name != '_base_'}
    return sorted(path for folder in folders for path in folder.glob('*.py') if path not in {*texts, *_BY_HAND})


def shown(path: Path) -> Path:
    """A path for people, relative to the repository if it is in it."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
