"""The examples of docs/configs.md are configs that load and build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS
from tpa_tools.config_writing.leaves import Leaves

from tests.helpers.tiny_configs import CONFIGS, shrink
from tests.helpers.world import ROOT
from tpa_mmseg import catalog

init_default_scope('mmseg')

PAGE = (ROOT / 'docs/configs.md').read_text(encoding='utf-8')
EXAMPLES, ENTRIES = (re.findall(rf'```{kind}\n(.*?)```', PAGE, re.DOTALL) for kind in ('python', 'yaml'))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with the shipped configs in it and room for a new one."""
    (tmp_path / 'configs/mine').mkdir(parents=True)
    for name in ('_base_', 'sclip'):
        (tmp_path / 'configs' / name).symlink_to(CONFIGS / name)
    return tmp_path


def load(example: str, path: Path) -> Config:
    path.write_text(example, encoding='utf-8')
    return Config.fromfile(path)


def test_shown_configs_are_the_shipped_ones() -> None:
    names = ('sclip_vit-b16_voc21', 'sclip_vit-l14_voc21')
    assert EXAMPLES[:2] == [(CONFIGS / f'sclip/{name}.py').read_text(encoding='utf-8') for name in names]


def test_host_is_added_by_a_config(tree: Path) -> None:
    cfg = load(EXAMPLES[2], tree / 'configs/mine/config.py')
    model = MODELS.build(shrink(cfg).model)
    assert (type(model.host).__name__, model.host.num_classes) == ('MaskCLIP', 20)


@pytest.mark.parametrize('entries', ENTRIES)
def test_entries_can_be_read(entries: str, tmp_path: Path) -> None:
    (tmp_path / 'mine.yaml').write_text(entries, encoding='utf-8')
    found = catalog.load(tmp_path / 'mine.yaml')
    own = catalog.shipped()
    assert found.hosts.keys() > own.hosts.keys() or found.backbones.keys() > own.backbones.keys()


def test_entries_of_a_host_give_its_configs(tmp_path: Path) -> None:
    (tmp_path / 'mine.yaml').write_text(ENTRIES[0], encoding='utf-8')
    texts = Leaves(catalog.load(tmp_path / 'mine.yaml'), catalog.shipped(), tmp_path).generate()
    names = {path.stem for path in texts}
    assert {'myhost_vit-l14_voc21', 'myhost-fsa_vit-b16_ade20k', 'myhost-mlmp_mini-b8'} <= names and len(names) == 8
