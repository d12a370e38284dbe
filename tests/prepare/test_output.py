"""What is written, what is kept, and what happens after an interruption."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.world import ROOT, environment
from tests.prepare import archives
from tests.prepare.archives import write_folder, write_tar, write_zip
from tpa_mmseg.errors import TPAError
from tpa_mmseg.prepare import prepare
from tpa_mmseg.prepare.jobs import InMemory, Job, run
from tpa_mmseg.prepare.output import JOURNAL, Output


def content(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob('*') if path.is_file() and path.name != JOURNAL)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def times(folder: Path) -> dict[str, int]:
    return {name: (folder / name).stat().st_mtime_ns for name in content(folder)}


@pytest.fixture
def voc(tmp_path):
    return write_tar(tmp_path / 'voc.tar', archives.voc(5))


def test_a_second_run_writes_nothing(voc, tmp_path):
    prepare('voc', [voc], tmp_path / 'out')
    before = times(tmp_path / 'out')
    assert prepare('voc', [voc], tmp_path / 'out').written == 0
    assert times(tmp_path / 'out') == before


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    stems = [f'val/ulm/ulm_{i:06d}_000019' for i in range(400)]
    images, labels = archives.cityscapes(stems, [7, 8], size=(8, 8))
    sources = [write_zip(tmp_path / 'images.zip', images), write_zip(tmp_path / 'labels.zip', labels)]
    out = tmp_path / 'out'
    command = [sys.executable, ROOT / 'tools/prepare.py', 'cityscapes', '--out', out, '--workers', '1', '--source']
    process = subprocess.Popen([*map(str, command), *map(str, sources)], env=environment(), stderr=subprocess.DEVNULL)
    journal = out / JOURNAL
    while process.poll() is None and not (journal.is_file() and journal.read_text().count('\n') >= 5):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    # As if the kill had come in the middle of a file and of a line.
    (out / 'gtFine/val/ulm').mkdir(parents=True, exist_ok=True)
    (out / 'gtFine/val/ulm/.ulm_000000_000019_gtFine_labelTrainIds.png.x1y2.tmp').write_bytes(b'half')
    journal.write_bytes(journal.read_bytes()[:-4])
    before = times(out)

    result = prepare('cityscapes', sources, out)
    assert 0 < result.written < result.files == 800
    after = times(out)
    assert all(after[name] == when for name, when in before.items() if not name.endswith('.tmp'))
    prepare('cityscapes', sources, tmp_path / 'at once')
    assert content(out) == content(tmp_path / 'at once')
    assert prepare('cityscapes', sources, out).written == 0


def test_a_foreign_file_is_not_overwritten(voc, tmp_path):
    foreign = tmp_path / 'out/SegmentationClass/2007_000004.png'
    write_folder(tmp_path / 'out', {'SegmentationClass/2007_000004.png': b'precious'})
    with pytest.raises(TPAError, match=r'2007_000004.png exists and was not written by this tool. Move it away'):
        prepare('voc', [voc], tmp_path / 'out')
    assert foreign.read_bytes() == b'precious'
    foreign.unlink()
    prepare('voc', [voc], tmp_path / 'out')
    assert foreign.read_bytes() == archives.voc(5)['VOCdevkit/VOC2012/SegmentationClass/2007_000004.png']


def test_a_file_that_was_changed_since_is_not_overwritten(voc, tmp_path):
    prepare('voc', [voc], tmp_path / 'out')
    (tmp_path / 'out/SegmentationClass/2007_000004.png').write_bytes(b'edited by hand')
    with pytest.raises(TPAError, match='was not written by this tool'):
        prepare('voc', [voc], tmp_path / 'out')


def test_a_foreign_file_that_is_equal_is_taken_over(voc, tmp_path):
    name = 'JPEGImages/2007_000004.jpg'
    write_folder(tmp_path / 'out', {name: archives.voc(5)[f'VOCdevkit/VOC2012/{name}']})
    before = (tmp_path / 'out' / name).stat().st_mtime_ns
    prepare('voc', [voc], tmp_path / 'out')
    assert (tmp_path / 'out' / name).stat().st_mtime_ns == before


def test_a_deleted_file_comes_back(voc, tmp_path):
    prepare('voc', [voc], tmp_path / 'out')
    (tmp_path / 'out/JPEGImages/2007_000004.jpg').unlink()
    assert prepare('voc', [voc], tmp_path / 'out').written == 1
    assert (tmp_path / 'out/JPEGImages/2007_000004.jpg').is_file()


def test_a_folder_may_be_prepared_in_place(tmp_path):
    stems = ['val/ulm/ulm_000000_000019']
    images, labels = archives.cityscapes(stems, [7, 8])
    folder = write_folder(tmp_path / 'cityscapes', {**images, **labels})
    before = times(folder)
    result = prepare('cityscapes', [folder], folder)
    assert (result.images, result.written) == (1, 1)
    assert times(folder).items() >= before.items()
    assert (folder / 'gtFine/val/ulm/ulm_000000_000019_gtFine_labelTrainIds.png').is_file()


def test_links_lead_to_the_images_of_a_folder_and_labels_are_files(tmp_path):
    images, labels = archives.cityscapes(['val/ulm/ulm_000000_000019'], [7, 8])
    folder = write_folder(tmp_path / 'unpacked', {**images, **labels})
    prepare('cityscapes', [folder], tmp_path / 'out', symlink=True)
    image = tmp_path / 'out/leftImg8bit/val/ulm/ulm_000000_000019_leftImg8bit.png'
    assert image.is_symlink() and image.resolve() == (folder / image.relative_to(tmp_path / 'out')).resolve()
    assert not (tmp_path / 'out/gtFine/val/ulm/ulm_000000_000019_gtFine_labelTrainIds.png').is_symlink()
    assert prepare('cityscapes', [folder], tmp_path / 'out', symlink=True).written == 0


def test_a_link_does_not_replace_a_foreign_file(tmp_path):
    images, labels = archives.cityscapes(['val/ulm/ulm_000000_000019'], [7, 8])
    folder = write_folder(tmp_path / 'unpacked', {**images, **labels})
    write_folder(tmp_path / 'out', {'leftImg8bit/val/ulm/ulm_000000_000019_leftImg8bit.png': b'precious'})
    with pytest.raises(TPAError, match='exists and is not a symlink'):
        prepare('cityscapes', [folder], tmp_path / 'out', symlink=True)


def test_a_full_disk_is_said_in_a_sentence_and_what_is_done_stays_done(tmp_path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, 'No space left on device')

    jobs = [Job(f'{i}.txt', InMemory(b'text', 'a text')) for i in range(3)]
    with Output(tmp_path / 'out') as output:
        run(jobs[:1], output)
        monkeypatch.setattr(os, 'fsync', full)
        with pytest.raises(TPAError, match=r'No space left while writing .*\.txt. Free some space'):
            run(jobs, output)
    assert content(tmp_path / 'out') == {'0.txt': b'text'}
    monkeypatch.undo()
    with Output(tmp_path / 'out') as output:
        assert run(jobs, output) == 2


def test_an_output_that_is_a_file_is_refused(voc, tmp_path):
    with pytest.raises(TPAError, match='is not a folder'):
        prepare('voc', [voc], voc)
