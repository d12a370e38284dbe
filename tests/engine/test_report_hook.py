from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from tests.engine.noisy_run import NoisyTruth, run, write_images
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.engine.provenance import Provenance
from tpa_mmseg.errors import TPAError
from tpa_mmseg.evaluation import with_bank
from tpa_mmseg.version import __version__

REPORT = [dict(type='ReportHook')]
EVERY = {'host', 'per_class', 'bank', 'caveats', 'seconds_per_image', 'config', 'settings', 'provenance'}


def bank() -> PrototypeBank:
    """A bank of three images in which the second class has no anchors."""
    bank = PrototypeBank(3, 4)
    bank.images, bank.counts = 3, torch.tensor([7, 0, 5])
    return bank


def strict_json(path: Path) -> dict:
    def refuse(token):
        raise AssertionError(f'{token} is not JSON')

    return json.loads(path.read_text(encoding='utf-8'), parse_constant=refuse)


def test_results_hold_both_scores_the_bank_and_the_anchors_of_each_class(tmp_path):
    write_images(tmp_path)
    run(tmp_path, NoisyTruth(bank=bank()), REPORT)
    results = strict_json(tmp_path / 'work' / 'results.json')
    assert set(results) == EVERY | {'tpa', 'gain', 'changed'}
    assert results['seconds_per_image'] > 0
    # One and two of eleven labeled rows are wrong.
    assert (results['host']['aAcc'], results['tpa']['aAcc'], results['gain']['aAcc']) == (81.82, 90.91, 9.09)
    assert [entry['anchors'] for entry in results['per_class']] == [7, 0, 5]
    counts = {'images': 3, 'classes_covered': 2, 'num_classes': 3, 'anchors': 12}
    assert results['bank'] == {'path': None, **counts, 'diagnosis': None}
    assert results['config'] is None
    assert sum(entry['support'] for entry in results['per_class']) == 3 * 11 * 16
    assert [path.name for path in (tmp_path / 'work').glob('*result*')] == ['results.json']


def test_plain_segmentor_has_no_tpa_part(tmp_path):
    write_images(tmp_path)
    run(tmp_path, NoisyTruth(with_host=False), REPORT)
    results = strict_json(tmp_path / 'work' / 'results.json')
    assert set(results) == EVERY
    assert results['host']['aAcc'] == 90.91
    assert results['bank'] is None


def test_results_say_what_they_were_made_with(tmp_path):
    write_images(tmp_path)
    (tmp_path / 'c.py').write_text("answer = 42\nwork_dir = 'private'\n")
    run(tmp_path, NoisyTruth(bank=bank()), REPORT, cfg=Config.fromfile(tmp_path / 'c.py'))
    origin = strict_json(tmp_path / 'work' / 'results.json')['provenance']
    Provenance(**origin)
    assert torch.__version__.startswith(origin['packages']['torch']) and origin['packages']['tpa_mmseg'] == __version__
    assert 'answer = 42' in origin['config'] and 'private' not in origin['config']
    assert origin['device'] and origin['seconds'] > 0 and origin['host_memory'] > 1 << 20
    assert set(origin['banks']) == {'full'} and set(origin['weights']) == {'model'} and origin['data']
    if origin['commit'] is not None:
        assert len(origin['commit']) == 40 and isinstance(origin['dirty'], bool)


def test_other_images_and_other_banks_have_other_digests(tmp_path):
    found = []
    other = bank()
    other.sums = other.sums + 1
    for names, used in ((['a.png'], bank()), (['b.png'], bank()), (['b.png'], other)):
        folder = tmp_path / str(len(found))
        write_images(folder, names)
        run(folder, NoisyTruth(bank=used), REPORT)
        origin = strict_json(folder / 'work' / 'results.json')['provenance']
        found.append((origin['data'], origin['banks']['full']))
    assert found[0][0] != found[1][0] == found[2][0]
    assert found[0][1] == found[1][1] != found[2][1]


def test_tables_are_logged_once_with_the_place_of_the_results(tmp_path):
    write_images(tmp_path)
    runner = run(tmp_path, NoisyTruth(bank=bank()), REPORT)
    log = next(Path(runner.log_dir).glob('*.log')).read_text(encoding='utf-8')
    assert log.count('| Class  | Host IoU | TPA IoU |') == 1
    assert log.count('| Gain | +9.09 |') == 1
    assert log.rstrip().endswith(f'Written to {tmp_path / "work" / "results.json"}')


def test_config_is_named_relative_to_the_current_directory(tmp_path, monkeypatch):
    write_images(tmp_path)
    monkeypatch.chdir(tmp_path)
    for place, expected in ((tmp_path / 'conf' / 'c.py', 'conf/c.py'), (tmp_path.parent / 'c.py', None)):
        place.parent.mkdir(exist_ok=True)
        place.write_text('a = 1\n')
        run(tmp_path, NoisyTruth(), REPORT, cfg=Config.fromfile(place))
        written = strict_json(tmp_path / 'work' / 'results.json')['config']
        assert written == (expected or str(place))


def test_nothing_is_written_where_nothing_was_scored(tmp_path):
    write_images(tmp_path)
    only_maps = dict(type='HostTPAMetric', format_only=True, output_dir=str(tmp_path / 'maps'))
    run(tmp_path, NoisyTruth(), REPORT, evaluator=only_maps)
    run(tmp_path, NoisyTruth(), REPORT, evaluator=dict(type='IoUMetric'))
    assert not (tmp_path / 'work' / 'results.json').exists()


def test_report_is_found_beside_other_metrics(tmp_path):
    write_images(tmp_path)
    evaluator = [dict(type='IoUMetric', prefix='theirs'), dict(type='HostTPAMetric')]
    runner = run(tmp_path, NoisyTruth(), REPORT, evaluator=evaluator)
    results = strict_json(tmp_path / 'work' / 'results.json')
    assert results['tpa']['mIoU'] == runner.test_loop.evaluator.metrics[1].report['tpa']['mIoU']


def test_full_disk_is_one_sentence_and_keeps_the_results_of_before(tmp_path, monkeypatch):
    write_images(tmp_path)
    run(tmp_path, NoisyTruth(), REPORT)
    before = (tmp_path / 'work' / 'results.json').read_text(encoding='utf-8')

    def full_disk(descriptor):
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', full_disk)
    with pytest.raises(TPAError, match=r'space .*results\.json'):
        run(tmp_path, NoisyTruth(with_host=False), REPORT)
    assert (tmp_path / 'work' / 'results.json').read_text(encoding='utf-8') == before


def test_adding_a_bank_leaves_the_report_as_it_was():
    report = {'per_class': [{'name': name} for name in 'abc']}
    added = with_bank(report, bank(), Path('bank.safetensors'))
    assert [entry['anchors'] for entry in added['per_class']] == [7, 0, 5]
    assert added['bank']['path'] == 'bank.safetensors'
    assert report == {'per_class': [{'name': name} for name in 'abc']}
    assert with_bank(report, None)['bank'] is None
