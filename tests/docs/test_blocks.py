"""Every block of commands or code in the pages runs as printed, but for long runs and real weights, or says why not."""

from __future__ import annotations

import re
import shlex
import shutil
from functools import partial
from pathlib import Path

import cv2
import pytest
from mmengine.config import Config
from PIL import Image, ImageShow

import tpa_mmseg
from tests.docs.pages import PAGES, blocks, fences
from tests.helpers.project import PROJECT
from tests.helpers.world import ROOT, results, run_in_process
from tpa_mmseg.apis.video import VideoWriter
from tpa_mmseg.engine.config_check import config_problems
from tpa_mmseg.miniature.dataset import MiniatureDataset

#: Page -> its blocks, of all pages that have some.
BLOCKS = {name: blocks(name) for path in PAGES if blocks(name := path.relative_to(ROOT).as_posix())}
#: The tiny models and scenes in place of real ones, and what would take too long.
MINI, CONFIG = 'mini-b8', 'configs/miniature/sclip_mini-b8.py'
WORDS = {
    'cat': 'zebra',
    'dog': 'star',
    'sofa': 'flower',
    'tv': 'wheel',
    'television': 'tire',
    'road': 'sand',
    'car': 'net',
    'tree': 'wood',
}
INSTEAD = {
    **{rf'\b{word}\b': tiny for word, tiny in WORDS.items()},
    r'--size (60|300)': '--size 6',
    r'\bsize=60 custom_hooks.0.pool.size=30': 'size=6 custom_hooks.0.pool.size=4',
    r'--pool-size 500': '--pool-size 5',
    r'\bCONFIG\b': CONFIG,
    r'\bDIR\b': 'photos',
}
FEW = ('--cfg-options', 'test_dataloader.dataset.size=6', 'custom_hooks.0.pool.size=4')


@pytest.fixture(scope='module')
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout, with the files that the pages speak of as the reader's own."""
    folder = tmp_path_factory.mktemp('checkout')
    shutil.copytree(ROOT / 'configs', folder / 'configs')
    for name in ('photos/a.jpg', 'photos/b.jpg', 'photos/c.jpg', 'photos/d.jpg', 'more_photos/e.jpg'):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(path), scene(ord(path.stem)))
    shutil.copy(folder / 'photos/a.jpg', folder / 'photo.jpg')
    cv2.imwrite(str(folder / 'image.png'), scene(0))
    with VideoWriter(folder / 'walk.mp4', 10) as video:
        for _ in range(3):
            video.add(Image.open(folder / 'photos/a.jpg'))
    return folder


def scene(number: int):
    """(H, W, 3) BGR pixels of a synthetic scene."""
    dataset = MiniatureDataset(split='val', size=200, pipeline=[{'type': 'LoadImageFromFile'}])
    return dataset[number]['img']


def instead(text: str) -> str:
    """What runs in place of a text."""
    for long, short in INSTEAD.items():
        text = re.sub(long, short, text)
    return text


def run(command: str) -> None:
    """Runs ``tpa TOOL ...`` or ``python tools/TOOL.py ...`` without a new interpreter; installs nothing."""
    program, first, *args = shlex.split(instead(command))
    if program == 'make':
        assert re.search(f'^{first}:', (ROOT / 'Makefile').read_text(), re.MULTILINE), command
        return
    if program == 'pip' and first == 'install':
        for extra in ','.join(re.findall(r'\[([\w,]+)\]', command)).split(','):
            assert not extra or extra in PROJECT['project']['optional-dependencies'], command
        return
    assert program == 'tpa' or (program == 'python' and first.startswith('tools/')), f'mark the block of: {command}'
    tool = Path(first).stem.replace('-', '_')
    if tool == 'segment' and '--backbone' not in args:
        args += ['--backbone', MINI]
    if tool in ('test', 'build_bank') and args[0].startswith('configs/miniature') and 'dataset.size' not in command:
        args += FEW
    try:
        run_in_process(tool, *args)
    except SystemExit as end:
        assert not end.code, command


def test_every_block_is_run_or_says_why_not() -> None:
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        assert fences(name) == len(BLOCKS.get(name, ())), f'{name}: a mark is the line before its block'
        for block in BLOCKS.get(name, ()):
            tests = re.findall(r'tests/[\w/]+\.py', block.reason)
            assert all((ROOT / path).is_file() for path in tests), block
            assert not block.reason or tests or block.reason.startswith(('needs ', 'a part of ')), block


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore::tpa_mmseg.apis.CaveatWarning')
@pytest.mark.parametrize('page', [page for page in BLOCKS if any(not block.reason for block in BLOCKS[page])])
def test_blocks_run(page: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    shutil.rmtree('work_dirs', ignore_errors=True)  # pages are read in any order
    monkeypatch.setattr(ImageShow, '_viewers', [])
    for name in ('segment', 'Segmenter'):
        monkeypatch.setattr(tpa_mmseg, name, partial(getattr(tpa_mmseg, name), backbone=MINI), raising=False)
    names = {'frames': ['photos/a.jpg', 'photos/b.jpg']}
    for block in BLOCKS[page]:
        if block.file:
            Path(block.file).parent.mkdir(exist_ok=True)
            Path(block.file).write_text(block.text, encoding='utf-8')
            if block.file.startswith('configs/'):
                assert list(config_problems(Config.fromfile(block.file))) == []
        elif not block.reason and block.language == 'python':
            exec(compile(instead(block.text), page, 'exec'), names)
        elif not block.reason:
            for command in block.commands:
                run(command)


@pytest.mark.slow
def test_the_table_of_one_row_is_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = 'docs/reproduce_one.md'
    (command,) = next(block for block in BLOCKS[page] if 'one_row' in block.text).commands
    shutil.copytree(ROOT / 'configs', tmp_path / 'configs')
    monkeypatch.chdir(tmp_path)
    run(command)
    found = results(tmp_path / 'work_dirs/one_row')
    for row in ('host', 'tpa', 'gain'):
        (text,) = re.findall(rf'^\| {row} .*', (ROOT / page).read_text(), re.MULTILINE | re.IGNORECASE)
        printed = [float(number) for number in re.findall(r'[-+]?\d+\.\d+', text)]
        assert [found[row][key] for key in ('aAcc', 'mIoU', 'mAcc')] == pytest.approx(printed, abs=0.05)
