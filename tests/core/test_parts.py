"""A large vocabulary is read in parts of its classes, which changes nothing but the time."""

from __future__ import annotations

import pytest
import torch

from tests.core.cases import RULES, both_labels, random_bank, random_scores
from tpa_mmseg.core import Alarms, AnchorRule, QueryScores, find_anchors
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts.pamr import RefinedMap

SIZE, GRID, CLASSES = (20, 30), (4, 6), 40
#: Sorted, some with synonyms.
QUERIES = sorted([*range(CLASSES), *range(0, CLASSES, 2)])


@pytest.fixture
def in_parts(monkeypatch):
    def switch() -> None:
        monkeypatch.setattr('tpa_mmseg.core.bilinear._BAND_ELEMENTS', {'cpu': 1 << 10})

    return switch


def host(rule) -> QueryScores:
    torch.manual_seed(0)
    return QueryScores(random_scores(len(QUERIES), (5, 7)), SIZE, QUERIES, rule)


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
@pytest.mark.parametrize('uncovered', [(), (0, 3, 17, 39)])
def test_parts_give_the_labels_of_the_whole(rule, uncovered, in_parts):
    scores, bank, phi = host(rule), random_bank(CLASSES, 8, uncovered), torch.randn(8, *GRID)
    whole = both_labels(scores, bank, phi)
    assert len(list(scores.parts())) == 1
    in_parts()
    assert len(list(scores.parts())) > 2
    for part, one in zip(both_labels(scores, bank, phi), whole, strict=True):
        assert torch.equal(part, one)


def test_parts_give_the_anchors_of_the_whole(in_parts):
    scores, rule = host(RULES['argmax']), AnchorRule(k_min=1)
    whole = find_anchors(scores, GRID, rule)
    in_parts()
    found = find_anchors(scores, GRID, rule)
    torch.testing.assert_close(found.weights, whole.weights)
    assert torch.equal(found.counts, whole.counts) and whole.counts.sum() > 100


def test_refined_scores_beyond_the_memory_are_refined_in_parts():
    torch.manual_seed(0)
    scores, image = random_scores(len(QUERIES), (5, 7)), torch.rand(3, 10, 14)
    labels = []
    for channels in (len(QUERIES), 7):
        refined = RefinedMap(scores, image, SIZE, 2, (1, 3), most_bytes=channels * 4 * SIZE[0] * SIZE[1])
        decoded = QueryScores(refined, SIZE, QUERIES)
        labels.append(decoded.labels())
        assert (len(list(decoded.parts())) == 1) == (channels == len(QUERIES))
        assert all(part.channels <= channels + 1 for _, part in decoded.parts())
    assert torch.equal(*labels)


def test_an_alarm_is_raised_with_its_own_sentence():
    alarms = Alarms()
    alarms.add(torch.tensor(False), 'never')
    with pytest.raises(TPAError, match='photo.jpg'):
        alarms.add(torch.tensor(True), lambda: 'photo.jpg is broken')
    assert len(alarms) == 0
