"""Random cases for the kernels, run under Triton's interpreter: as a program, because it is chosen at import."""

from __future__ import annotations

import os
import random
import sys

os.environ['TRITON_INTERPRET'] = '1'

import torch

from tpa_mmseg.core import (
    ENCODER,
    Adapter,
    AnchorRule,
    DecisionRule,
    Evidence,
    Fusion,
    PrototypeBank,
    QueryScores,
    ScoreMap,
    decide,
    find_anchors,
    fused,
)
from tpa_mmseg.hosts.windows import Sliding, StitchedWindows

RULES = [
    DecisionRule(),
    DecisionRule(prob_thd=0.4),
    DecisionRule(area_thd=0.12),
    DecisionRule(prob_thd=0.35, area_thd=0.12),
]
#: Scores as close as this may be decided either way.
CLOSE = 1e-6
SOURCES = ('grid', 'full size', 'windows', 'downsampled')


def source(kind: str, queries: int, size: tuple[int, int]):
    if kind == 'windows':
        sliding, network = Sliding(16, 8), (24, 40)
        count = len(sliding.spans(24)) * len(sliding.spans(40))
        return StitchedWindows([2 * torch.randn(queries, 4, 4) for _ in range(count)], sliding, network, size, False)
    shape = {'grid': (5, 7), 'full size': size, 'downsampled': (size[0] + 9, size[1] + 4)}[kind]
    return 2 * torch.randn(queries, *shape)


def clear(scores: ScoreMap) -> torch.Tensor:
    """(H, W) pixels that rounding cannot relabel: no two classes, nor the best and its threshold, are close."""
    ranked = scores.probabilities().log().sort(0).values
    far = (ranked.diff(dim=0) > CLOSE).all(0)
    return far & (((ranked[-1].exp() * scores.mass) - scores.rule.prob_thd).abs() > CLOSE)


def case(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    classes, dim, size, grid = random.randint(1, 7), 6, (random.randint(5, 30), random.randint(5, 80)), (4, 6)
    extra = random.choice((0, 3))
    query_to_class = sorted([*range(classes), *(random.randrange(classes) for _ in range(extra))])
    kind, rule = SOURCES[seed % 4], RULES[seed // 4 % 4]
    scores = QueryScores(source(kind, len(query_to_class), size), size, query_to_class, rule)
    bank = PrototypeBank(classes, dim)
    bank.sums, bank.counts = torch.randn(classes, dim).double(), torch.randint(0, 2, (classes,)) + seed % 2
    bank.sums[bank.counts == 0] = 0
    phi = torch.randn(dim, *grid)
    adapter = Adapter(bank.prototypes(), Fusion(decision=random.choice(('host', 'argmax'))))

    evidence = Evidence(scores, {ENCODER: phi})

    def run(switch: str):
        os.environ[fused.KERNELS] = switch
        labels = decide(evidence, [adapter], torch.uint8)
        alone = scores.labels(torch.int16)
        return (labels.host, labels.adapted[0], alone), find_anchors(scores, grid, AnchorRule(k_min=1))

    assert fused.FusedReader.of(scores, [None]) is not None, f'{kind} does not fit'
    (eager, eager_anchors), (ours, our_anchors) = run('0'), run('1')
    for one, other, decided in zip(ours, eager, (scores, adapter.fuse(evidence), scores), strict=True):
        sure = clear(decided)
        assert one.dtype == other.dtype and sure.float().mean() > 0.99
        assert torch.equal(one[sure], other[sure]), f'seed {seed}, {kind}, {rule}: {(one != other).sum()} labels differ'
    torch.testing.assert_close(our_anchors.weights, eager_anchors.weights)
    assert torch.equal(our_anchors.counts, eager_anchors.counts)


if __name__ == '__main__':
    seeds = range(int(sys.argv[1]))
    for number in seeds:
        os.environ[fused.KERNELS] = '1'
        case(number)
    print(f'{len(seeds)} cases equal')
