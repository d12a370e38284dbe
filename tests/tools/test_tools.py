"""tools/test.py and tools/build_bank.py from end to end, on a real small segmentor."""

from __future__ import annotations

import shutil

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.world import ROOT, SIZE, make_world, results, run_in_process, write_config
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.miniature.world import CLASSES


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('world')
    make_world(folder)
    run_in_process('test', folder / 'config.py', '--work-dir', folder / 'first', '--out', folder / 'labels')
    return folder


def fails(capfd, tool, *args) -> str:
    """Runs a tool that must fail; returns the one sentence it ends with."""
    with pytest.raises(SystemExit) as stop:
        run_in_process(tool, *args)
    assert stop.value.code == 2
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith('error: ')]
    assert len(said) == 1
    return said[0]


def test_host_and_tpa_are_scored_in_one_pass(world):
    report = results(world / 'first')
    assert set(report) == {
        'host', 'tpa', 'gain', 'per_class', 'bank', 'changed', 'caveats', 'seconds_per_image', 'config', 'settings',
        'provenance'
    }  # fmt: skip
    assert 0 < report['changed'] < 1 and report['caveats'] == []
    assert report['tpa']['mIoU'] > report['host']['mIoU'] > 50
    assert report['gain']['mIoU'] == pytest.approx(report['tpa']['mIoU'] - report['host']['mIoU'], abs=1e-6)
    assert [row['name'] for row in report['per_class']][:2] == ['grass', 'water']
    assert {'host_iou', 'tpa_iou', 'support'} <= set(report['per_class'][0])
    assert report['bank']['images'] == 5


def test_the_host_alone_scores_the_same_without_tpa(world):
    run_in_process('test', world / 'config.py', '--work-dir', world / 'alone', '--no-tpa')
    alone = results(world / 'alone' / 'no-tpa')
    assert alone['host'] == results(world / 'first')['host']
    assert not alone.get('tpa')
    assert not list((world / 'alone').rglob('bank.safetensors'))


def test_results_of_other_settings_are_not_overwritten(world, capfd):
    before = (world / 'first' / 'results.json').read_bytes()
    common = (world / 'config.py', '--work-dir', world / 'first')
    said = fails(capfd, 'test', *common, '--cfg-options', 'model.fusion.alpha=0.3')
    assert 'results.json has the results of other settings' in said
    assert 'no options' in said and 'model.fusion.alpha=0.3' in said and 'another --work-dir' in said
    run_in_process('test', *common, '--no-tpa')
    assert (world / 'first' / 'results.json').read_bytes() == before


def test_predictions_are_written_as_label_pictures(world):
    files = sorted((world / 'labels').iterdir())
    assert [file.name for file in files] == [f'{i:04d}.png' for i in range(7)]
    labels = np.asarray(Image.open(files[0]))
    assert labels.shape == SIZE and labels.max() < 14


def test_a_second_run_takes_the_bank_of_the_first(world):
    path = world / 'first' / 'bank.safetensors'
    before = path.stat().st_mtime_ns
    run_in_process('test', world / 'config.py', '--work-dir', world / 'first')
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize('option', ['custom_hooks.0.pool.size=4', 'model.anchors.k=3', 'custom_hooks.0.pool.seed=9'])
def test_a_bank_for_other_settings_is_built_anew(world, tmp_path, option):
    shutil.copytree(world / 'first', tmp_path / 'work')
    (tmp_path / 'work' / 'results.json').unlink()
    before = (tmp_path / 'work' / 'bank.safetensors').read_bytes()
    run_in_process('test', world / 'config.py', '--work-dir', tmp_path / 'work', '--cfg-options', option)
    assert (tmp_path / 'work' / 'bank.safetensors').read_bytes() != before


def test_a_damaged_bank_in_the_work_directory_is_built_anew(world, tmp_path):
    shutil.copytree(world / 'first', tmp_path / 'work')
    path = tmp_path / 'work' / 'bank.safetensors'
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    run_in_process('test', world / 'config.py', '--work-dir', tmp_path / 'work')
    assert path.read_bytes() == whole


def test_a_given_bank_is_used(world):
    bank = world / 'first' / 'bank.safetensors'
    run_in_process('test', world / 'config.py', '--work-dir', world / 'given', '--bank', bank)
    given = results(world / 'given')
    assert given['tpa'] == results(world / 'first')['tpa']
    assert given['bank']['path'] == str(bank)
    assert not (world / 'given' / 'bank.safetensors').exists()


def test_a_bank_is_built_without_testing_and_without_labels(tmp_path):
    make_world(tmp_path)
    shutil.rmtree(tmp_path / 'scenes' / 'labels')
    run_in_process(
        'build_bank', tmp_path / 'config.py', '--out', tmp_path / 'b.safetensors', '--work-dir', tmp_path / 'w'
    )
    assert PrototypeBank.load(tmp_path / 'b.safetensors').images == 5


def test_a_bank_grows_to_what_one_pass_would_have_built(world, tmp_path):
    common = (world / 'config.py', '--work-dir', tmp_path / 'work')
    run_in_process('build_bank', *common, '--out', tmp_path / 'small', '--pool-size', 3)
    run_in_process('build_bank', *common, '--out', tmp_path / 'grown', '--pool-size', 7, '--extend', tmp_path / 'small')
    run_in_process('build_bank', *common, '--out', tmp_path / 'whole', '--pool-size', 7)
    grown, whole = (PrototypeBank.load(tmp_path / name) for name in ('grown', 'whole'))
    assert grown.images == whole.images == 7
    assert sorted(grown.pool) == whole.pool
    assert torch.equal(grown.counts, whole.counts)
    torch.testing.assert_close(grown.sums, whole.sums, rtol=1e-12, atol=1e-9)


def test_pictures_are_written_for_every_image(world):
    run_in_process('test', world / 'config.py', '--work-dir', world / 'shown', '--show-dir', world / 'pictures')
    assert len(list((world / 'pictures').rglob('*.png'))) == 7


def test_odd_images_work(tmp_path):
    make_world(tmp_path, count=1)
    images = tmp_path / 'scenes' / 'images'
    rng = np.random.default_rng(0)
    shapes = {'gray': (30, 40), 'rgba': (30, 40, 4), 'line': (1, 50, 3), 'wide': (3, 400, 3), 'dot': (2, 2, 3)}
    for name, shape in shapes.items():
        cv2.imwrite(str(images / f'{name}.png'), rng.integers(0, 255, shape).astype(np.uint8))
        cv2.imwrite(str(images.parent / 'labels' / f'{name}.png'), rng.integers(0, 8, shape[:2]).astype(np.uint8))
    cv2.imwrite(str(images / 'deep.png'), rng.integers(0, 65535, (30, 40, 3)).astype(np.uint16))
    cv2.imwrite(str(images.parent / 'labels' / 'deep.png'), np.zeros((30, 40), np.uint8))
    config = write_config(tmp_path, pool=7)
    run_in_process(
        'test', config, '--work-dir', tmp_path / 'work', '--show-dir', tmp_path / 'show', '--out', tmp_path / 'out'
    )
    for name, shape in shapes.items():
        assert np.asarray(Image.open(tmp_path / 'out' / f'{name}.png')).shape == shape[:2]
    assert results(tmp_path / 'work')['bank']['images'] == 7


def test_a_truncated_bank_is_refused(world, tmp_path, capfd):
    data = (world / 'first' / 'bank.safetensors').read_bytes()
    (tmp_path / 'cut.safetensors').write_bytes(data[:-100])
    said = fails(
        capfd, 'test', world / 'config.py', '--work-dir', tmp_path / 'w', '--bank', tmp_path / 'cut.safetensors'
    )
    assert 'cut.safetensors is not a readable prototype bank' in said
    assert not (tmp_path / 'w' / 'results.json').exists()


def test_a_foreign_file_is_refused_as_a_bank(world, tmp_path, capfd):
    said = fails(capfd, 'test', world / 'config.py', '--work-dir', tmp_path / 'w', '--bank', __file__)
    assert 'test_tools.py is not a readable prototype bank' in said
    weights = ROOT / 'tpa_mmseg/miniature/weights/fcn.safetensors'
    said = fails(capfd, 'test', world / 'config.py', '--work-dir', tmp_path / 'w', '--bank', weights)
    assert 'not a prototype bank' in said


def test_a_bank_of_another_encoder_is_refused(world, tmp_path, capfd):
    bank = world / 'first' / 'bank.safetensors'
    common = (world / 'config.py', '--work-dir', tmp_path / 'w', '--bank', bank)
    said = fails(capfd, 'test', *common, '--cfg-options', 'model.encoder.pretrained=False')
    assert 'was made with another encoder' in said


def test_a_missing_bank_is_refused(world, tmp_path, capfd):
    said = fails(capfd, 'test', world / 'config.py', '--work-dir', tmp_path / 'w', '--bank', tmp_path / 'none')
    assert 'Bank file not found' in said


@pytest.mark.parametrize('workers', [0, 1])
def test_an_image_that_cannot_be_read_is_named(tmp_path, capfd, workers):
    make_world(tmp_path)
    (tmp_path / 'scenes' / 'images' / '0003.png').write_bytes(b'broken')
    option = f'test_dataloader.num_workers={workers}'
    common = (tmp_path / 'config.py', '--work-dir', tmp_path / 'w', '--cfg-options', option)
    said = fails(capfd, 'test', *common, 'custom_hooks.0.pool.size=7')
    assert '0003.png (not one of the formats' in said
    assert not (tmp_path / 'w' / 'bank.safetensors').exists()
    (tmp_path / 'list.txt').write_text('0000\n0001\n', encoding='utf-8')
    files = (f'custom_hooks.0.pool.files={tmp_path / "list.txt"}', 'custom_hooks.0.pool.size=None')
    assert '0003.png (not one of the formats' in fails(capfd, 'test', *common, *files)


def test_a_pool_larger_than_the_data_set_is_refused(world, tmp_path, capfd):
    common = (world / 'config.py', '--work-dir', tmp_path / 'w', '--cfg-options')
    assert 'only 7 images' in fails(capfd, 'test', *common, 'custom_hooks.0.pool.size=8')


@pytest.mark.parametrize(
    'option, expected',
    [
        ('model.host.type=Nobody', "model.host.type is unknown: 'Nobody'. Choose from: "),
        ('model.encoder.type=Nobody', "model.encoder.type is unknown: 'Nobody'. Choose from: "),
        ('model.encoder.model=vit_nobody', 'vit_nobody'),
        ('model.host.checkpoint=gone.pth', 'gone.pth'),
        ('test_dataloader.dataset.data_root=nowhere', 'Data not found: nowhere'),
        ('test_dataloader.dataset.ann_file=val.txt', 'val.txt. Check the path'),
        ('test_dataloader.dataset.data_prefix.img_path=gone', 'gone. Check the path'),
    ],
)
def test_what_is_missing_is_named(world, tmp_path, capfd, option, expected):
    said = fails(capfd, 'test', world / 'config.py', '--work-dir', tmp_path / 'w', '--cfg-options', option)
    assert expected in said


def test_missing_weights_say_which_file_to_download_and_where(world, tmp_path, capfd, monkeypatch, no_hub):
    monkeypatch.setenv('TPA_WEIGHTS', str(tmp_path / 'weights'))
    options = ('model.encoder.model=vit_tiny_patch16_224.augreg_in21k', 'model.encoder.pretrained=True')
    said = fails(capfd, 'test', world / 'config.py', '--work-dir', tmp_path / 'w', '--cfg-options', *options)
    assert 'timm/vit_tiny_patch16_224.augreg_in21k' in said
    assert str(tmp_path / 'weights') in said


@pytest.mark.parametrize('alone', [(), ('--no-tpa',)])
def test_classes_that_do_not_fit_the_data_set_are_refused(alone, tmp_path, capfd):
    make_world(tmp_path)
    config = write_config(tmp_path, test_dataloader__dataset__metainfo__classes=('moon', *CLASSES))
    options = ('--cfg-options', 'test_dataloader.dataset.metainfo.palette=[]')
    said = fails(capfd, 'test', config, '--work-dir', tmp_path / 'w', *alone, *options)
    assert 'has 14 classes, but the dataset has 15' in said


def test_all_wrong_options_are_named_at_once(world, tmp_path, capfd):
    options = ('model.host.check_point=a.pth', 'model.fusion.lambda=-3', 'modl.bank=x', 'custom_hooks.9.reuse=1')
    with pytest.raises(SystemExit) as stop:
        run_in_process('test', world / 'config.py', '--work-dir', tmp_path / 'w', '--cfg-options', *options)
    assert stop.value.code == 2 and not (tmp_path / 'w').exists()
    first, second, third, *lines = capfd.readouterr().err.strip().splitlines()
    assert first == f'error: The config {world / "config.py"} has 4 problems:'
    assert second == '  modl.bank is not in the config. Did you mean model?'
    assert third.startswith('  custom_hooks.9.reuse=1 does not fit into the config (KeyError: ')
    assert lines == [
        '  model.fusion.lambda_ must be a number of at least 0, not -3.',
        '  model.host.check_point is not an option of SegmentorHost. Did you mean model.host.checkpoint?',
    ]


def test_options_that_cannot_be_parsed_are_named(world, capfd):
    said = fails(capfd, 'test', world / 'config.py', '--cfg-options', 'model.anchors.k=[2,(3]')
    assert '--cfg-options model.anchors.k=[2,(3] cannot be read' in said


def test_a_missing_config_is_named(tmp_path, capfd):
    assert 'nothing.py' in fails(capfd, 'test', tmp_path / 'nothing.py')


def test_a_bank_is_inspected_and_an_extended_one_is_not_diagnosed(world, tmp_path, capfd):
    bank = world / 'first' / 'bank.safetensors'
    assert results(world / 'first')['bank']['diagnosis']['kappa_inf'] > 0
    run_in_process('bank', 'inspect', bank, '--out', tmp_path / 'alike.png')
    said = capfd.readouterr().out
    for text in ('Agreement of halves', 'Classes most alike', 'ladybug', 'kappa_0', 'Labels ', 'encoder: '):
        assert text in said
    pixels = np.asarray(Image.open(tmp_path / 'alike.png'))
    assert pixels.ndim == 3 and pixels.std() > 10
    common = (world / 'config.py', '--work-dir', tmp_path / 'work')
    run_in_process('build_bank', *common, '--out', tmp_path / 'more', '--extend', bank, '--pool-size', 7)
    assert PrototypeBank.load(tmp_path / 'more').diagnosis is None
    capfd.readouterr()
    run_in_process('bank', 'inspect', tmp_path / 'more')
    assert 'was not measured' in capfd.readouterr().out
    assert 'is not a readable prototype bank' in fails(capfd, 'bank', 'inspect', world / 'config.py')
