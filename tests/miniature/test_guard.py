"""The guard of the whole system: every host with the committed weights scores what it scored, and TPA gains."""

from __future__ import annotations

from pathlib import Path

import pytest
from tpa_tools.miniature_training import guard
from tpa_tools.miniature_training.measure import HOSTS, PAPER_HOSTS

from tpa_mmseg.errors import TPAError


@pytest.fixture(scope='module')
def recorded() -> dict:
    return guard.recorded()


@pytest.mark.slow
@pytest.mark.parametrize('host', HOSTS)
def test_committed_weights_give_the_committed_numbers(host: str, recorded: dict, tmp_path: Path) -> None:
    if host == 'trident':
        pytest.importorskip('segment_anything')  # an extra of the package
    found = guard.measure_slice(host, tmp_path)
    assert guard.complaint(host, found, recorded[host]) is None


def test_tpa_gains_with_every_host_of_the_paper(recorded: dict) -> None:
    assert {host: numbers['tpa'] > numbers['base'] for host, numbers in recorded.items() if host in PAPER_HOSTS} == (
        dict.fromkeys(PAPER_HOSTS, True)
    )


def test_plain_clip_is_far_below_the_hosts_that_change_it(recorded: dict) -> None:
    assert recorded['clip']['base'] < min(recorded[host]['base'] for host in PAPER_HOSTS) - 5


@pytest.mark.parametrize(
    ('found', 'said'),
    [
        ({'base': 50.0, 'tpa': 53.05}, None),
        ({'base': 50.3, 'tpa': 53.0}, 'SCLIP: base mIoU is 50.30 and was 50.00.'),
        ({'base': 50.0, 'tpa': 52.0}, 'SCLIP: tpa mIoU is 52.00 and was 53.00.'),
    ],
)
def test_other_numbers_are_told(found: dict, said: str | None) -> None:
    assert guard.complaint('sclip', found, {'base': 50.0, 'tpa': 53.0}) == said


def test_a_gain_that_is_gone_is_told_even_where_it_was_recorded() -> None:
    numbers = {'base': 50.0, 'tpa': 49.9}
    assert guard.complaint('naclip', numbers, numbers) == 'NACLIP: TPA takes its mIoU from 50.00 to 49.90.'
    assert guard.complaint('clip', numbers, numbers) is None  # the paper has no row of plain CLIP


def test_numbers_of_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, 'NUMBERS', tmp_path / 'numbers.json')
    with pytest.raises(TPAError, match='Write it with tools/miniature.py record'):
        guard.recorded()
    numbers = {host: {'base': 1.0, 'tpa': 2.0} for host in HOSTS}
    guard.record(numbers)
    assert guard.recorded() == numbers
    monkeypatch.setattr(guard, 'weight_digests', lambda: {'clip.safetensors': '0' * 16})
    with pytest.raises(TPAError, match=r'recorded with another clip\.safetensors'):
        guard.recorded()
