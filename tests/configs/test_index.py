"""The index of the configs is up to date, and in the format of OpenMMLab's mim."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from tests.helpers.world import ROOT
from tpa_mmseg.catalog import paper

FOUND = {path.stem for path in (ROOT / 'configs').glob('*/*_vit-*_*.py')}


@pytest.fixture(scope='module')
def tool():
    spec = importlib.util.spec_from_file_location('config_index', ROOT / 'tools/config_index.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_index_is_up_to_date(tool) -> None:
    stale = [path for path, text in tool.generate().items() if path.read_text(encoding='utf-8') != text]
    assert stale == [], 'run python tools/config_index.py'


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


def test_paper_has_no_row_that_was_not_printed() -> None:
    assert paper.scores('naclip', 'vit-l14', 'mlmp')['ade20k'] is None
    assert paper.scores('proxyclip', 'vit-b16', 'tpa', proxy='mae')['voc21'] == 56.9
    with pytest.raises(KeyError, match='trident'):
        paper.scores('trident', 'vit-l14', 'tpa')
