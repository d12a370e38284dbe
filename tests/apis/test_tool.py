"""tools/segment.py: its output folder, its messages, the files that it skips."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.tiny_segmenter import painted, tiny_config
from tests.helpers.world import run_in_process
from tpa_mmseg.core import PrototypeBank


@pytest.fixture(scope='module')
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('config') / 'tiny.py'
    tiny_config().dump(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two images, a broken one, and something else."""
    path = tmp_path / 'images'
    path.mkdir()
    for seed in range(2):
        Image.fromarray(painted(seed)).save(path / f'{seed}.png')
    (path / 'broken.jpg').write_bytes(b'\xff\xd8 not an image')
    (path / 'notes.txt').write_text('not an image', encoding='utf-8')
    return path


def write_video(path: Path, frames: int) -> Path:
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*'mp4v'), 10, (64, 48))
    for seed in range(frames):
        writer.write(painted(seed, (48, 64)))
    writer.release()
    return path


def areas(out: Path) -> dict:
    return json.loads((out / 'areas.json').read_text(encoding='utf-8'))


def test_folder_becomes_overlays_labels_comparisons_and_areas(
    config: Path, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    out, bank = tmp_path / 'out', tmp_path / 'bank.safetensors'
    run_in_process(
        'segment', folder, '--classes', 'cat', 'tv; television', '--host', config, '--out', out, '--save-bank', bank
    )
    for kind in ('overlays', 'labels', 'comparisons'):
        assert sorted(path.name for path in (out / kind).iterdir()) == ['0.png', '1.png']
    report = areas(out)
    assert report['classes'] == ['cat', 'tv'] and len(report['images']) == 2
    assert sorted(each['name'] for each in report['skipped']) == ['broken.jpg', 'notes.txt']
    assert PrototypeBank.load(bank).images == 2
    said = capfd.readouterr()
    assert 'Skipped broken.jpg' in said.err and 'Skipped notes.txt' in said.err
    assert said.out.startswith('2 classes: cat / tv (= television)\n')
    assert 'Wrote 2 images to' in said.out and 'Bank of 2 images' in said.out


def test_saved_bank_and_pool_take_the_place_of_the_images(config: Path, folder: Path, tmp_path: Path) -> None:
    common = [folder / '0.png', '--classes', 'cat, dog', '--host', config]
    torch.manual_seed(0)  # the weights are random
    run_in_process('segment', *common, '--out', tmp_path / 'a', '--pool', folder, '--save-bank', tmp_path / 'bank')
    assert areas(tmp_path / 'a')['images'][0]['bank_images'] == 2
    torch.manual_seed(0)
    run_in_process('segment', *common, '--out', tmp_path / 'b', '--bank', tmp_path / 'bank')
    assert areas(tmp_path / 'b')['images'][0]['areas'] == areas(tmp_path / 'a')['images'][0]['areas']


@pytest.mark.parametrize(('size', 'images'), ((1, 1), (0, 2), (100, 2)))
def test_pool_has_a_size(size: int, images: int, config: Path, folder: Path, tmp_path: Path) -> None:
    (folder / 'broken.jpg').unlink()
    for pool in ([], ['--pool', folder]):
        args = [folder, '--classes', 'cat, dog', '--host', config, '--out', tmp_path / 'out', '--pool-size', size]
        run_in_process('segment', *args, *pool)
        assert {each['bank_images'] for each in areas(tmp_path / 'out')['images']} == {images}


def test_host_alone_has_no_bank_and_no_difference(config: Path, folder: Path, tmp_path: Path) -> None:
    run_in_process(
        'segment', folder / '0.png', '--classes', 'cat, dog', '--host', config, '--no-tpa', '--out', tmp_path / 'out'
    )
    (entry,) = areas(tmp_path / 'out')['images']
    assert entry['changed'] == 0 and 'bank_images' not in entry


def test_consistent_tpa_is_chosen_on_the_command_line(
    config: Path, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    common = [folder / '0.png', '--classes', 'cat, dog', '--host', config, '--pool', folder]
    for name, options in (('paper', []), ('ours', ['--consistent'])):
        torch.manual_seed(0)  # the weights are random
        run_in_process('segment', *common, '--out', tmp_path / name, '--save-bank', tmp_path / f'{name}.bank', *options)
    assert ' follow the image' in capfd.readouterr().out
    paper, ours = (PrototypeBank.load(tmp_path / f'{name}.bank') for name in ('paper', 'ours'))
    assert paper.diagnosis is None and torch.equal(ours.sums, paper.sums)
    same = areas(tmp_path / 'ours')['images'] == areas(tmp_path / 'paper')['images']
    assert same or ours.diagnosis.beta2 > 0


def bank_images(out: Path) -> list[int]:
    """Size of the bank at each frame of a video."""
    lines = (out / 'areas/clip.jsonl').read_text(encoding='utf-8').splitlines()
    return [json.loads(line)['bank_images'] for line in lines]


def test_bank_grows_while_a_video_runs_or_is_built_before(config: Path, folder: Path, tmp_path: Path) -> None:
    video = write_video(tmp_path / 'clip.mp4', frames=6)
    model = ('--classes', 'cat, dog', '--host', config, '--frame-stride', 2)

    def run(*options) -> list[int]:
        run_in_process('segment', video, *model, '--out', tmp_path / 'out', *options)
        return bank_images(tmp_path / 'out')

    assert run('--grow') == [1, 2, 3]
    assert run('--pool', folder / '0.png', '--grow') == [2, 3, 4]
    assert run('--pool', folder / '0.png') == [1, 1, 1]
    assert run('--pool-size', 2) == [2, 2, 2]
    (entry,) = areas(tmp_path / 'out')['videos']
    assert (entry['frames'], entry['frames_per_second'], entry['areas']) == (3, 5, 'areas/clip.jsonl')
    for kind in ('overlays', 'comparisons'):
        film = cv2.VideoCapture(str(tmp_path / 'out' / kind / 'clip.mp4'))
        assert film.get(cv2.CAP_PROP_FRAME_COUNT) == 3
        readable, frame = film.read()
        assert readable and frame.std() > 10
    assert np.asarray(Image.open(tmp_path / 'out/labels/clip/000002.png')).shape == (48, 64)


def fails(capfd: pytest.CaptureFixture, *args) -> str:
    """Runs the tool, which must fail, and returns the one line that says why."""
    with pytest.raises(SystemExit):
        run_in_process('segment', *args)
    (said,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith('error: ')]
    return said


@pytest.mark.parametrize(
    ('args', 'says'),
    (
        (['nowhere.png'], 'nowhere.png'),
        (['nowhere.mp4'], 'nowhere.mp4'),
        (['{folder}/broken.jpg'], 'broken.jpg'),
        (['{folder}/0.png', '--bank', 'nowhere.bank'], 'nowhere.bank'),
        (['{folder}/0.png', '--alpha', '3'], 'alpha'),
        (['{folder}/0.png', '--host', 'nobody'], "Unknown host 'nobody'"),
        (['{folder}/0.png', '--host', 'sclip', '--backbone', 'vit-x1'], "'vit-x1'"),
    ),
)
def test_error_that_a_user_can_fix_is_one_sentence(
    args: list[str], says: str, config: Path, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    args = [arg.format(folder=folder) for arg in args]
    said = fails(capfd, '--host', config, '--classes', 'cat, dog', '--out', tmp_path / 'out', *args)
    assert says in said


def test_classes_are_required(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    assert '--classes is required' in fails(capfd, folder, '--out', tmp_path / 'out')


def test_names_of_strangers_cannot_steer_the_terminal(
    config: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    """Sequences that clear the screen or rename the window, in a class, an image, a broken file and a missing one."""
    evil = '\x1b[2J\x1b]0;evil\x07\u202e\x9b'
    folder = tmp_path / 'images'
    folder.mkdir()
    Image.fromarray(painted(0)).save(folder / f'{evil}.png')
    (folder / f'{evil}.jpg').write_bytes(b'broken')
    (folder / f'{evil}.txt').touch()
    classes = tmp_path / 'classes.txt'
    classes.write_text(f'cat{evil}; dog{evil}\nsofa\n', encoding='utf-8')
    run_in_process('segment', folder, '--classes', classes, '--host', config, '--out', tmp_path / 'out')
    with pytest.raises(SystemExit):
        run_in_process('segment', folder / f'no{evil}', '--classes', 'cat', 'dog', '--host', config)
    said = capfd.readouterr()
    for text in (said.out, said.err):
        assert '\\x1b[2J' in text
        assert not set(text) & set('\x1b\x07\x9b\u202e')
