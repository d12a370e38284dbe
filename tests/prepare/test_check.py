"""tools/prepare.py check, and what else the tool says."""

from __future__ import annotations

import pytest

from tests.helpers.world import run_in_process
from tests.prepare import archives
from tests.prepare.archives import label, photo, write_folder, write_tar, write_zip
from tpa_mmseg.prepare import check, exists, prepare


def cityscapes(count: int, values=(0, 18, 255)) -> dict[str, bytes]:
    """A prepared dataset."""
    files = {}
    for i in range(count):
        stem = f'val/ulm/ulm_{i:06d}_000019'
        files[f'leftImg8bit/{stem}_leftImg8bit.png'] = photo(i, 'PNG', (4, 6))
        files[f'gtFine/{stem}_gtFine_labelTrainIds.png'] = label(values, (4, 6))
    return files


def ade20k(values) -> dict[str, bytes]:
    return {
        'images/validation/ADE_val_00000001.jpg': photo(1),
        'annotations/validation/ADE_val_00000001.png': label(values),
    }


def kinds(report) -> dict[str, int]:
    return {finding.what: finding.count for finding in report.findings}


def test_a_complete_data_set_is_fine(tmp_path, capfd):
    write_folder(tmp_path / 'cityscapes', cityscapes(500))
    with pytest.raises(SystemExit) as stop:
        run_in_process('prepare', 'check', '--data-root', tmp_path)
    assert stop.value.code == 0
    said = capfd.readouterr().out
    assert '| Cityscapes |' in said and '| OK ' in said
    assert 'Not prepared: voc, context, coco_stuff, coco_object, ade20k.' in said


def test_everything_wrong_is_listed_with_what_to_do(tmp_path, capfd):
    files = cityscapes(6)
    stem = 'val/ulm/ulm_{:06d}_000019'
    picture, answer = f'leftImg8bit/{stem}_leftImg8bit.png', f'gtFine/{stem}_gtFine_labelTrainIds.png'
    del files[picture.format(0)], files[answer.format(1)]
    files[picture.format(2)] = files[picture.format(2)][:60]
    files[answer.format(3)] = photo(0, 'PNG')
    files[answer.format(4)] = label([0], (6, 4))
    files[answer.format(5)] = label([0, 33], (4, 6))
    write_folder(tmp_path / 'cityscapes', files)
    assert kinds(check('cityscapes', tmp_path / 'cityscapes')) == {
        'label without image': 1,
        'number of images': 1,
        'label missing': 1,
        'image unreadable': 1,
        'label unreadable': 1,
        'sizes differ': 1,
        'label out of range': 1,
    }
    with pytest.raises(SystemExit) as stop:
        run_in_process('prepare', 'check', 'cityscapes', '--data-root', tmp_path)
    assert stop.value.code == 1
    said = capfd.readouterr().out
    assert '5 instead of 500' in said
    assert f'{answer.format(5)} contains 33, expected 0 to 18 and 255' in said
    assert 'python tools/prepare.py cityscapes --source leftImg8bit_trainvaltest.zip gtFine_trainvaltest.zip' in said


def test_images_that_the_list_names_must_be_there(tmp_path):
    prepare('voc', [write_tar(tmp_path / 'voc.tar', archives.voc(3))], tmp_path / 'out')
    (tmp_path / 'out/JPEGImages/2007_000002.jpg').unlink()
    (tmp_path / 'out/SegmentationClass/2007_000004.png').unlink()
    report = check('voc', tmp_path / 'out')
    assert kinds(report) == {'number of images': 1, 'image missing': 1, 'label missing': 1}
    assert (report.images, report.labels) == (2, 1)


def test_a_data_set_without_its_list_is_not_there(tmp_path):
    prepare('voc', [write_tar(tmp_path / 'voc.tar', archives.voc(3))], tmp_path / 'out')
    assert exists('voc', tmp_path / 'out') and not exists('coco_object', tmp_path / 'out')
    (tmp_path / 'out/ImageSets/Segmentation/val.txt').unlink()
    assert not exists('voc', tmp_path / 'out')
    assert 'list of images missing' in kinds(check('voc', tmp_path / 'out'))


@pytest.mark.parametrize(('values', 'fine'), [([0, 1, 150], True), ([0, 149, 255], False), ([151], False)])
def test_ade20k_labels_keep_their_zero(tmp_path, values, fine):
    write_folder(tmp_path / 'ade', ade20k(values))
    assert ('label out of range' not in kinds(check('ade20k', tmp_path / 'ade'))) == fine


@pytest.mark.parametrize(('count', 'origin'), [(5104, 'trainval_merged.json'), (5105, 'VOC 2010')])
def test_the_list_of_context_is_named_by_its_length(tmp_path, count, origin):
    text = ''.join(f'2008_{i:06d}\n' for i in range(count)).encode()
    write_folder(tmp_path / 'out', {'ImageSets/SegmentationContext/val.txt': text})
    report = check('context', tmp_path / 'out')
    assert report.origin == f'the list of {origin}'
    assert kinds(report) == {'image missing': count}


def test_a_data_set_asked_for_by_name_must_be_there(tmp_path, capfd):
    with pytest.raises(SystemExit) as stop:
        run_in_process('prepare', 'check', 'voc', '--data-root', tmp_path)
    assert stop.value.code == 1
    assert 'folder missing' in capfd.readouterr().out


@pytest.mark.parametrize(
    ('names', 'message'),
    [((), 'error: No datasets in '), (('vox',), "error: Unknown dataset 'vox'. Choose from: voc, voc21, voc20, ")],
)
def test_nothing_to_check_is_said_in_a_sentence(tmp_path, capfd, names, message):
    with pytest.raises(SystemExit) as stop:
        run_in_process('prepare', 'check', *names, '--data-root', tmp_path)
    assert stop.value.code == 2
    assert capfd.readouterr().err.startswith(message)


@pytest.mark.parametrize('name', ['voc', 'voc20', 'voc21'])
def test_a_dataset_goes_by_the_names_of_its_benchmarks_too(tmp_path, capfd, name):
    archive = write_tar(tmp_path / 'voc.tar', archives.voc(3))
    run_in_process('prepare', name, '--source', archive, '--data-root', tmp_path)
    assert f'Pascal VOC 2012: 3 test images in {tmp_path / "VOCdevkit/VOC2012"}' in capfd.readouterr().out
    with pytest.raises(SystemExit):
        run_in_process('prepare', 'check', name, 'voc21', '--data-root', tmp_path)
    said = capfd.readouterr().out
    assert said.count('| Pascal VOC 2012 |') == 1 and '3 instead of 1449' in said


def test_the_tool_prepares_into_the_data_root_and_warns_of_a_part(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv('TPA_DATA', str(tmp_path / 'root'))
    archive = write_zip(tmp_path / 'ADEChallengeData2016.zip', archives.ade20k(3))
    run_in_process('prepare', 'ade20k', '--source', archive, '--workers', 2)
    said = capfd.readouterr().out
    assert f'ADE20K: 3 test images in {tmp_path / "root/ade/ADEChallengeData2016"}, 6 files written.' in said
    assert 'Warning: expected 2,000 test images' in said


def test_the_tool_ends_with_one_sentence(tmp_path, capfd):
    (tmp_path / 'voc.tar').write_bytes(b'')
    with pytest.raises(SystemExit) as stop:
        run_in_process('prepare', 'voc', '--source', tmp_path / 'voc.tar', '--out', tmp_path / 'out')
    assert stop.value.code == 2
    said = capfd.readouterr().err
    assert said.startswith('error: ') and said.count('\n') == 1
