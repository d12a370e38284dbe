"""On a GPU nothing is waited for between an image and its labels, and few kernels are started."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch

from tests.helpers.launches import fake_gpu, launches
from tpa_mmseg.core import (
    ENCODER,
    Adapter,
    AnchorRule,
    DecisionRule,
    Evidence,
    PrototypeBank,
    Prototypes,
    QueryScores,
    UpsampledNorm,
    decide,
)
from tpa_mmseg.core.centered import CenteredPrototypes, SecondTerm
from tpa_mmseg.hosts.windows import Sliding, StitchedWindows


class Setting(NamedTuple):
    """A benchmark as a host sees it."""

    classes: int
    queries: int
    size: tuple[int, int]
    network: tuple[int, int]
    rule: DecisionRule = DecisionRule()


VOC21 = Setting(21, 56, (375, 500), (336, 448), DecisionRule(prob_thd=0.1, area_thd=0.1))
ADE20K = Setting(150, 150, (512, 683), (336, 448))
CITYSCAPES = Setting(19, 19, (1024, 2048), (560, 1120))
SETTINGS = {'VOC21': VOC21, 'ADE20K': ADE20K, 'Cityscapes': CITYSCAPES}

#: The most operations per image, (stage, benchmark) -> limit. What was counted is in docs/performance.md.
LIMITS = {
    ('stitching', 'VOC21'): 10,
    ('stitching', 'ADE20K'): 10,
    ('stitching', 'Cityscapes'): 10,
    ('lookup', 'VOC21'): 30,
    ('lookup', 'ADE20K'): 30,
    ('lookup', 'Cityscapes'): 30,
    ('decode', 'VOC21'): 120,
    ('decode', 'ADE20K'): 64,
    ('decode', 'Cityscapes'): 64,
    ('bank update', 'VOC21'): 80,
    ('bank update', 'ADE20K'): 80,
    ('bank update', 'Cityscapes'): 80,
}
SLIDING, DIM = Sliding(224, 112), 768


class Image:
    """What the networks left of an image, on the fake GPU."""

    def __init__(self, setting: Setting, covered: int | None = None) -> None:
        self.setting = setting
        count = len(SLIDING.spans(setting.network[0])) * len(SLIDING.spans(setting.network[1]))
        self.windows = list(torch.empty(count, setting.queries, 14, 14, device='cuda'))
        self.phi = torch.empty(DIM, setting.network[0] // 14, setting.network[1] // 14, device='cuda')
        covered = setting.classes if covered is None else covered
        vectors = torch.empty(setting.classes, DIM, dtype=torch.float64, device='cuda')
        known = torch.empty(setting.classes, dtype=torch.bool, device='cuda')
        self.prototypes = Prototypes(vectors, known, tuple(range(covered)))
        extra = setting.queries - setting.classes
        self.query_to_class = (
            [0] * (1 + extra // 2) + list(range(1, setting.classes)) + [setting.classes - 1] * (extra - extra // 2)
        )
        self.bank = PrototypeBank(setting.classes, DIM, device='cuda')

    def scores(self) -> QueryScores:
        setting = self.setting
        source = StitchedWindows(self.windows, SLIDING, setting.network, setting.size, nonfinite=False)
        return QueryScores(source, setting.size, self.query_to_class, setting.rule)

    def consistent(self) -> Adapter:
        around = self.prototypes.vectors[0], self.prototypes.vectors[:, 0]
        parts = self.prototypes.vectors, self.prototypes.covered, *around, self.prototypes.classes
        return Adapter(self.prototypes, second=SecondTerm(CenteredPrototypes(*parts), 3.0, 0.005))

    def stages(self) -> dict:
        scores, adapter = self.scores(), Adapter(self.prototypes)
        evidence = Evidence(scores, {ENCODER: self.phi})
        adapter.fuse(evidence)  # the lookup is a stage of its own

        def lookup() -> None:
            UpsampledNorm(self.phi, self.setting.size)
            adapter.fuse(evidence)

        return {
            'stitching': self.scores,
            'lookup': lookup,
            'decode': lambda: decide(evidence, [adapter]),
            'bank update': lambda: self.bank.update(scores, self.phi),
        }


@pytest.mark.parametrize(('stage', 'benchmark'), LIMITS)
def test_an_image_takes_few_kernels_and_no_wait(stage, benchmark):
    with fake_gpu():
        names = launches(Image(SETTINGS[benchmark]).stages()[stage])
    assert names.total() <= LIMITS[stage, benchmark], names


@pytest.mark.parametrize('rule', [DecisionRule(), DecisionRule(prob_thd=0.2), DecisionRule(area_thd=0.1)])
@pytest.mark.parametrize('covered', [0, 5, 21])
def test_every_rule_and_coverage_is_decided_without_a_wait(rule, covered):
    with fake_gpu():
        image = Image(VOC21._replace(rule=rule), covered)
        own, (adapted,) = decide(
            Evidence(image.scores(), {ENCODER: image.phi}), [Adapter(image.prototypes)], torch.uint8
        )
        assert own.device.type == 'cuda' and own.shape == adapted.shape == VOC21.size and own.dtype == torch.uint8


@pytest.mark.parametrize('rule', [DecisionRule(), DecisionRule(prob_thd=0.2, area_thd=0.1)])
@pytest.mark.parametrize('covered', [5, 21])
def test_the_second_lookup_of_consistent_tpa_is_added_without_a_wait(rule, covered):
    with fake_gpu():
        image = Image(VOC21._replace(rule=rule), covered)
        evidence = Evidence(image.scores(), {ENCODER: image.phi})
        own, (adapted,) = decide(evidence, [image.consistent()], torch.uint8)
        assert own.device.type == 'cuda' and own.shape == adapted.shape == VOC21.size


@pytest.mark.parametrize('rule', [AnchorRule(k_min_scope='pool'), AnchorRule(per='patch')])
def test_every_kind_of_anchor_is_found_without_a_wait(rule):
    with fake_gpu():
        image = Image(VOC21)
        bank = PrototypeBank(VOC21.classes, DIM, rule, 'cuda')
        assert bank.update(image.scores(), image.phi).device.type == 'cuda'


def test_a_vocabulary_of_thousands_is_read_in_parts_without_a_wait(monkeypatch):
    monkeypatch.setenv('TPA_BAND_BYTES', str(64 << 20))
    with fake_gpu():
        image = Image(Setting(3000, 4000, (512, 2048), (336, 1344), DecisionRule(prob_thd=0.1, area_thd=0.1)))
        assert len(list(image.scores().parts())) > 1
        for stage in image.stages().values():
            stage()
        decide(Evidence(image.scores(), {ENCODER: image.phi}), [image.consistent()])


def test_a_smaller_budget_of_bytes_makes_more_bands(monkeypatch):
    with fake_gpu():
        scores = Image(VOC21).scores()
        assert len(list(scores.ranges())) == 1
        monkeypatch.setenv('TPA_BAND_BYTES', str(4 << 20))
        assert len(list(scores.ranges())) > 5


def test_the_measurement_refuses_to_wait():
    with fake_gpu(), pytest.raises(Exception, match='nonzero|item|local_scalar'):
        torch.empty(3, device='cuda').nonzero()
