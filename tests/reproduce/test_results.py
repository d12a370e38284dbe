"""Results survive the trip through their file, and what is not a result is refused with one sentence."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reproduce.made_up import PROVENANCE
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
    provenance=PROVENANCE,
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


@pytest.mark.parametrize('content', ['', '{"schema": 1}', json.dumps({'schema': 99}), '[]', '[' * 100_000, '\udc80'])
def test_what_is_not_a_result_is_refused_with_its_path(tmp_path: Path, content: str) -> None:
    path = tmp_path / 'results.json'
    path.write_text(content, encoding='utf-8', errors='surrogateescape')
    with pytest.raises(TPAError, match='results.json is not a readable result'):
        RunResult.load(path)


def changed(place: tuple, value: object) -> str:
    """The valid result as JSON, with one thing replaced."""
    content = json.loads(RESULT.to_json())
    part = content
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ('place', 'value', 'said'),
    [
        (('schema',), 2, 'schema: Input should be 3'),
        (('images',), '3', 'images: Input should be a valid integer'),
        (('images',), 10**30, 'images: '),
        (('host', 'mIoU'), float('inf'), 'host.mIoU: '),
        (('variants', 0, 'tpa', 'mIoU'), 100.5, 'variants.0.tpa.mIoU: '),
        (('variants', 0, 'per_class', 1, 'name'), ['sky'], 'variants.0.per_class.1.name: '),
        (('surprise',), 1, 'surprise: Unexpected keyword argument'),
        (('pictures', 0, 'file'), '../../../secret.png', 'pictures.0.file: '),
        (('pictures', 0, 'file'), '/secret.png', 'pictures.0.file: '),
        (('pictures', 0, 'file'), 'pictures/../secret.png', 'pictures.0.file: '),
        (('cfg_options', 'model.k'), float('inf'), 'cfg_options: '),
        (('provenance', 'seconds'), None, 'provenance.seconds: '),
    ],
)
def test_first_wrong_field_is_named(place: tuple, value: object, said: str) -> None:
    with pytest.raises(TPAError) as caught:
        RunResult.parse(changed(place, value), 'there/results.json')
    text = str(caught.value)
    assert text.startswith(f'there/results.json is not a readable result ({said}') and '\n' not in text


def test_nan_is_written_as_null(tmp_path: Path) -> None:
    nan = float('nan')
    result = replace(RESULT, host=Scores(nan, 58.0, nan))
    result.save(tmp_path / 'results.json')
    assert json.loads((tmp_path / 'results.json').read_text(), parse_constant=pytest.fail)['host']['aAcc'] is None
    assert RunResult.load(tmp_path / 'results.json').host == Scores(None, 58.0, None)


def test_names_cannot_command_a_terminal() -> None:
    found = RunResult.parse(changed(('provenance', 'device'), 'A\x1b[2J100\n'), 'x')
    assert found.provenance.device == 'A\ufffd[2J100\ufffd'


def test_file_beyond_all_measure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'results.json'
    with path.open('wb') as file:
        file.truncate(1 << 40)
    with pytest.raises(TPAError, match='more than 64 MB'):
        RunResult.load(path)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part, max_size=3),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A result in which something was replaced, removed or added, or whose bytes were changed."""
    content = copy.deepcopy(json.loads(RESULT.to_json()))
    for _ in range(draw(st.integers(1, 3))):
        part = content
        while True:
            keys = list(part) if isinstance(part, dict) else list(range(len(part)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(part[key], (dict, list)) and draw(st.booleans()):
                part = part[key]
                continue
            part[key] = draw(ANYTHING)
            break
    text = bytearray(json.dumps(content).encode())
    for _ in range(draw(st.integers(0, 2))):
        text[draw(st.integers(0, len(text) - 1))] = draw(st.integers(0, 255))
    return bytes(text)


@settings(max_examples=120, deadline=None)
@given(content=damaged() | ANYTHING.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50))
def test_damaged_results_are_results_or_our_error(content: bytes) -> None:
    try:
        found = RunResult.parse(content, 'results.json')
    except TPAError as error:
        assert str(error).startswith('results.json is not a readable result (')
    else:
        assert RunResult.parse(found.to_json(), 'again') == found
