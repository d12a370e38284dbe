"""The notebooks of the documentation run from top to bottom."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers.world import ROOT

NOTEBOOKS = sorted((ROOT / 'docs/notebooks').glob('*.ipynb'))


@pytest.mark.slow
@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={'metadata': {'path': tmp_path}}).execute()
    texts = [output.get('text', '') for cell in notebook.cells for output in cell.get('outputs', [])]
    assert any('of the pixels' in text for text in texts)


def test_both_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == ['own_images', 'own_segmentor']
