"""The claims of the paper's text, computed from its own tables: some hold, some do not."""

from __future__ import annotations

import pandas as pd
import pytest

from tpa_mmseg.catalog import paper
from tpa_mmseg.reproduce.claims import claims

SCORES = paper.scores()


@pytest.fixture(scope='module')
def found() -> dict[str, tuple]:
    return {claim.title: (claim.value, claim.cells, claim.printed) for claim in claims(pd.DataFrame(SCORES).T)}


def test_mean_gain_of_the_eleven_rows_is_more_than_the_text_says(found: dict) -> None:
    assert found['mean gain'] == (2.95, 88, 2.8)


def test_gain_of_attention_hosts_holds_for_the_smallest_backbone_only(found: dict) -> None:
    assert found['attention hosts'] == (4.12, 48, 3.3)
    assert found['attention hosts, vit-b16'][0] == pytest.approx(3.3, abs=0.05)


def test_gain_of_vfm_hosts_holds_for_none(found: dict) -> None:
    assert found['VFM hosts'][2] == 1.7
    values = [value for title, (value, *_) in found.items() if title.startswith('VFM hosts')]
    assert values == [1.54, 1.98, 1.52, 1.11]


def test_four_cells_are_negative(found: dict) -> None:
    assert found['negative cells'] == (4, 88, 0)


@pytest.mark.parametrize(
    'method, theirs, ours',
    [
        ('FSA', 1.8, 3.26),
        ('FSA, other encoders inside', 1.14, 2.25),
        ('ResCLIP', 2.0, 3.28),
        ('MLMP', 4.03, 3.38),
        ('MLMP, 224 protocol', 4.61, 4.2),
    ],
)
def test_gains_of_other_methods_are_of_the_same_cells(found: dict, method: str, theirs: float, ours: float) -> None:
    assert found[f'gain of {method}'][0] == theirs
    assert found[f'gain of TPA on the same cells as {method}'][0] == ours


def test_claims_of_parts_of_tables_say_how_many_cells_they_have() -> None:
    part = {key: dict(list(row.items())[:2]) for key, row in SCORES.items() if key.startswith('sclip')}
    found = {claim.title: claim for claim in claims(pd.DataFrame(part).T)}
    assert (found['mean gain'].cells, found['negative cells'].value) == (4, 0)
    assert pd.isna(found['VFM hosts'].value)
    assert all(pd.isna(claim.value) and not claim.cells for claim in claims(pd.DataFrame()))


def test_row_of_mlmp_is_the_base_plus_differences_of_another_protocol() -> None:
    (row, parts), *_ = paper.tables()['derived_rows'].items()
    high, low = parts['plus']
    for benchmark, printed in SCORES[row].items():
        derived = SCORES[parts['from']][benchmark] + SCORES[high][benchmark] - SCORES[low][benchmark]
        assert printed == pytest.approx(derived, abs=0.11), benchmark


def test_numbers_that_are_printed_twice_surround_what_the_cells_give() -> None:
    for entry in paper.tables()['printed_differently']:
        assert len(set(entry['printed'])) == 2
        assert min(abs(entry['from_cells'] - number) for number in entry['printed']) <= 0.06


def test_bank_of_the_paper_is_half_precision_prototypes() -> None:
    classes = {'voc21': 21, 'ade20k': 150, 'coco_stuff164k': 171}
    kilobytes = {name: count * 768 * 2 / 1024 for name, count in classes.items()}
    assert {name: round(kilobytes[name]) for name in paper.tables()['bank_kb']} == paper.tables()['bank_kb']
    assert kilobytes['coco_stuff164k'] == 256.5


def test_resclip_table_is_of_rows_that_there_are() -> None:
    assert all(len(SCORES[row]) == 8 for row in paper.tables()['resclip'])


def test_base_rows_of_every_host_have_a_source() -> None:
    said = paper.about_base_rows()
    assert all(host in said for host in ('SCLIP', 'ClearCLIP', 'NACLIP', 'ProxyCLIP', 'Trident', "FSA's paper"))
