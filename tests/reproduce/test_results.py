"""Results survive the trip through their file, and what is not a result is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tpa_mmseg.errors import TPAError
from tpa_mmseg.reproduce.results import (
    BankInfo,
    ClassScore,
    Cost,
    OverlapSplit,
    Picture,
    RepetitionCurve,
    RunResult,
    Scores,
    Timing,
    VariantResult,
)

VARIANT = VariantResult(
    key='full',
    value=1.0,
    tpa=Scores(90.0, 60.0, 70.0),
    gain=Scores(1.0, 2.0, None),
    per_class=(ClassScore('sky', 50.0, 52.0, 2.0, 123, 7), ClassScore('moon', None, None, None, 0)),
    bank=BankInfo(4, 1, 2, 7, 100),
)
RESULT = RunResult(
    experiment='cost',
    suite='paper',
    run='naclip_vit-b16_voc21',
    config='naclip/naclip_vit-b16_voc21.py',
    images=3,
    seconds=1.5,
    startup_seconds=2.5,
    device='A100',
    host=Scores(89.0, 58.0, 70.0),
    variants=(VARIANT,),
    repetition=(RepetitionCurve('labels', (1, 2), {'2': (0.0, 0.5)}),),
    overlap=(OverlapSplit('high', 0.9, 1.0, 4, 5),),
    cost=Cost({'host': Timing(6.0, 5.0, 7.0, 30)}, 0.1, 0.4, (336, 448), 21, 'A100'),
    pictures=(Picture('pictures/best-1-anchors.png', 'anchors', 'best', 'a.jpg', 'A caption.', 1.2),),
)


def test_results_survive_the_trip_through_their_file(tmp_path: Path) -> None:
    RESULT.save(tmp_path / 'results.json')
    assert RunResult.load(tmp_path / 'results.json') == RESULT


def test_variant_is_found_by_its_key() -> None:
    assert RESULT.variant('full') is VARIANT
    assert RESULT.variant('none') is None


@pytest.mark.parametrize('content', ['', '{"schema": 1}', json.dumps({'schema': 99}), '[]'])
def test_what_is_not_a_result_is_refused_with_its_path(tmp_path: Path, content: str) -> None:
    path = tmp_path / 'results.json'
    path.write_text(content)
    with pytest.raises(TPAError, match='results.json is not a readable result'):
        RunResult.load(path)
