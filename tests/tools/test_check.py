"""What users are told before a test, and about results that would mislead them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
import torch
from mmengine.config import Config
from tpa_tools.command import run_tool

from tests.helpers.world import ROOT, environment, make_world, results, run_in_process, write_config
from tpa_mmseg.core import AnchorRule, Fusion, PrototypeBank
from tpa_mmseg.engine.config import checked_config, parse_options, use_checkpoint
from tpa_mmseg.errors import TPAError
from tpa_mmseg.evaluation import bank_caveats, unchanged_caveat

MINIATURE = ROOT / 'configs/miniature'


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('world')
    make_world(folder)
    return folder


def fails(capfd, tool, *args) -> str:
    with pytest.raises(SystemExit) as stop:
        run_in_process(tool, *args)
    assert stop.value.code == 2
    return capfd.readouterr().err.strip().removeprefix('error: ')


def test_a_check_names_everything_and_builds_nothing(world, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(torch.nn.Module, '__init__', None)
    for tool, extra in (('check', ()), ('test', ('--check',)), ('build_bank', ('--check', '--out', tmp_path / 'b'))):
        run_in_process(tool, world / 'config.py', '--work-dir', tmp_path / 'w', *extra)
        shown = capfd.readouterr().out
        for part in (
            'every key and value fits',
            '7 images',
            'fcn.safetensors',
            'will be built from 5',
            'GB free',
            'not known',
        ):
            assert part in shown, (tool, part)
    assert not (tmp_path / 'w').exists() and not (tmp_path / 'b').exists()


def test_a_check_names_what_is_missing(world, tmp_path, capfd, no_hub):
    options = ('model.host.checkpoint=gone.pth', 'custom_hooks.0.pool.size=8', f'model.bank={tmp_path / "none"}')
    said = fails(capfd, 'check', world / 'config.py', '--work-dir', tmp_path / 'w', '--cfg-options', *options)
    assert said.endswith('cannot be tested yet. Missing: weights, bank (see the table).')
    options = ('test_dataloader.dataset.data_root=nowhere',)
    assert 'Missing: data' in fails(capfd, 'check', world / 'config.py', '--cfg-options', *options)


def test_a_check_knows_the_time_of_the_last_test(world, tmp_path, capfd):
    (tmp_path / 'results.json').write_text('{"seconds_per_image": 0.5}')
    run_in_process('check', world / 'config.py', '--work-dir', tmp_path)
    assert '0.50 s per image last time, 4 s for all' in capfd.readouterr().out


@pytest.mark.parametrize('listed', [False, True])
@pytest.mark.parametrize('suffix', ['.jpg', '.PNG'])
def test_images_with_another_suffix_are_named(world, tmp_path, capfd, suffix, listed):
    options = [f'test_dataloader.dataset.img_suffix={suffix}']
    if listed:
        (tmp_path / 'list.txt').write_text('0000\n0001\n')
        options.append(f'test_dataloader.dataset.ann_file={tmp_path / "list.txt"}')
    said = fails(capfd, 'test', world / 'config.py', '--work-dir', tmp_path / 'w', '--cfg-options', *options)
    assert f"ends in {suffix!r}: 7 images end in '.png', so set test_dataloader.dataset.img_suffix='.png'." in said


def test_options_of_workers_are_left_out_where_there_are_none(world):
    options = ['num_workers=0', 'persistent_workers=True', 'prefetch_factor=2', 'timeout=9']
    options = parse_options([f'test_dataloader.{each}' for each in options])
    loader = checked_config(world / 'config.py', options=options).test_dataloader
    assert not {'persistent_workers', 'prefetch_factor', 'timeout'} & loader.keys()
    options['test_dataloader.num_workers'] = 1
    assert checked_config(world / 'config.py', options=options).test_dataloader.persistent_workers


def test_lambda_may_be_written_as_it_is_called(world):
    cfg = checked_config(world / 'config.py', options=parse_options(['model.fusion.lambda=3']))
    assert cfg.model.fusion.lambda_ == 3


def test_a_config_needs_no_default_scope(world, tmp_path):
    cfg = Config.fromfile(world / 'config.py')
    cfg.pop('default_scope')
    cfg.dump(tmp_path / 'config.py')
    assert checked_config(tmp_path / 'config.py').default_scope == 'mmseg'


def test_a_work_directory_that_cannot_be_written_is_named(world, capfd):
    file = world / 'config.py'
    said = fails(capfd, 'test', file, '--work-dir', file / 'below')
    assert said.startswith(f'Cannot write {file / "below"} (Not a directory)')


def test_a_checkpoint_is_for_the_segmentor():
    cfg = Config.fromfile(MINIATURE / 'fcn_mini.py')
    use_checkpoint(cfg, 'a.pth')
    assert cfg.model.host.checkpoint == 'a.pth'
    cfg.model.host = cfg.model.host.segmentor
    use_checkpoint(cfg, 'b.pth')
    assert (cfg.model.host.type, cfg.model.host.checkpoint) == ('SegmentorHost', 'b.pth')
    cfg.model = cfg.model.host.segmentor
    use_checkpoint(cfg, 'c.pth')
    assert cfg.load_from == 'c.pth'
    with pytest.raises(TPAError, match=r'The host NACLIP takes no checkpoint \(d.pth\)'):
        use_checkpoint(Config.fromfile(MINIATURE / 'naclip_mini-b8.py'), 'd.pth')


def test_random_weights_are_a_caveat_and_mark_the_table(world, tmp_path, capfd):
    config = write_config(tmp_path, pool=2, model__host__checkpoint=None)
    cfg = Config.fromfile(config)
    cfg.test_dataloader.dataset = Config.fromfile(world / 'config.py').test_dataloader.dataset
    cfg.dump(config)
    run_in_process('test', config, '--work-dir', tmp_path / 'w')
    shown = capfd.readouterr()
    caveats = results(tmp_path / 'w')['caveats']
    assert caveats[0] == 'The weights of EncoderDecoder are random: set model.host.checkpoint to its weights file.'
    assert '| Gain (!) |' in shown.err + shown.out and f'(!) {caveats[0]}' in shown.err + shown.out


def test_a_test_says_little_before_its_bar(world, tmp_path, capfd):
    run_in_process('test', world / 'config.py', '--work-dir', tmp_path / 'w')
    shown = ''.join(capfd.readouterr())
    log = next((tmp_path / 'w').rglob('*.log')).read_text(encoding='utf-8')
    for part in ('System environment', 'Config:', 'Hooks will be executed'):
        assert part in log and part not in shown
    assert shown.count('\n') < 40 + len(shown.partition('| Class')[2].splitlines())
    assert 'Testing SegmentorHost with TPA on 7 images. 14 classes: grass / water' in shown
    run_in_process('test', world / 'config.py', '--work-dir', tmp_path / 'w')
    assert f'Using the bank {tmp_path / "w" / "bank.safetensors"} of an earlier run.' in ''.join(capfd.readouterr())


def test_an_interrupted_tool_says_so_in_one_line(world, tmp_path):
    command = [sys.executable, '-u', 'tools/test.py', world / 'config.py', '--work-dir', tmp_path / 'w']
    command += ['--cfg-options', 'test_dataloader.num_workers=1']
    running = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment(), cwd=ROOT
    )
    while not list(tmp_path.rglob('*.log')):
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=120)[1].strip().splitlines()
    assert running.returncode == 130
    assert said[-1] == 'Interrupted.' and not any('Traceback' in line for line in said)


def test_an_interrupt_that_a_library_takes_for_an_error_is_one(capsys):
    def format_config(args):
        try:
            raise KeyboardInterrupt
        except BaseException as error:
            raise SyntaxError('cannot be formatted') from error

    with pytest.raises(SystemExit) as stop:
        run_tool(format_config, None)
    assert stop.value.code == 130 and capsys.readouterr().err.strip() == 'Interrupted.'


def coverage(images: int, counts: list[int]):
    bank = PrototypeBank(len(counts), 4)
    bank.images, bank.counts = images, torch.tensor(counts)
    bank.sums += 1
    return bank.coverage()


def test_caveats_give_the_cause_and_the_remedy():
    rule = AnchorRule()
    assert 'The bank is empty' in bank_caveats(coverage(0, [0, 0, 0]), rule)[0]
    (text,) = bank_caveats(coverage(4, [0, 0, 0]), rule)
    assert text.startswith('No class has anchors') and 'above 0.67 (k = 2, 3 classes)' in text and 'logit_scale' in text
    (text,) = bank_caveats(coverage(4, [9, 0, 0]), rule)
    assert text.startswith('Only 1 of 3 classes have a prototype') and 'larger pool' in text
    assert bank_caveats(coverage(4, [9, 9, 0]), rule) == []
    assert 'its weight (1 - alpha) * lambda is 0' in unchanged_caveat(Fusion(alpha=1.0), rule, 3)
    assert 'Raise lambda' in unchanged_caveat(Fusion(), rule, 3)
