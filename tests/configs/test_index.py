"""Configs and their index are what the catalog says, and in the format of OpenMMLab's mim."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tpa_tools.config_writing import generate, left_over, stale

from tests.helpers.world import ROOT, run_in_process

FOUND = {path.stem for path in (ROOT / 'configs').glob('*/*_vit-*_*.py')}


def test_generated_files_are_up_to_date() -> None:
    texts = generate()
    assert len(texts) > 324
    assert (stale(texts), left_over(texts)) == ([], []), 'run python tools/config_index.py --write'


def test_check_names_what_differs(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / 'configs/sclip/sclip_vit-b16_voc21.py'
    known = Path.read_text
    monkeypatch.setattr(Path, 'read_text', lambda self, **options: '' if self == path else known(self, **options))
    with pytest.raises(SystemExit, match='1'):
        run_in_process('config_index', '--check')
    said = capsys.readouterr().out.splitlines()
    assert said == [
        'configs/sclip/sclip_vit-b16_voc21.py differs from the catalog: run python tools/config_index.py --write.'
    ]


def test_readme_links_every_config_once() -> None:
    text = (ROOT / 'configs/README.md').read_text(encoding='utf-8')
    links = re.findall(r'\]\(([a-z]+/[^)]+\.py)\)', text)
    assert sorted(Path(link).stem for link in links) == sorted(FOUND)
    assert all((ROOT / 'configs' / link).is_file() for link in links)
    assert '[64.1 → 66.5](naclip/naclip_vit-b16_voc21.py)' in text


def test_mim_finds_every_config_with_the_numbers_of_the_paper() -> None:
    # Inside the package, where mim looks.
    folder = ROOT / 'tpa_mmseg/.mim'
    index = yaml.safe_load((folder / 'model-index.yml').read_text(encoding='utf-8'))
    files = [yaml.safe_load((folder / path).read_text(encoding='utf-8')) for path in index['Import']]
    models = {model['Name']: model for file in files for model in file['Models']}
    assert set(models) == FOUND
    collections = {collection['Name'] for file in files for collection in file['Collections']}
    for name, model in models.items():
        assert model['In Collection'] in collections
        assert (folder / model['Config']).stem == name and (folder / model['Config']).is_file()
    (result,) = models['clearclip_vit-l14_ade20k']['Results']
    assert result['Metrics'] == {'mIoU of the host (paper)': 15.0, 'mIoU with TPA (paper)': 17.6}
