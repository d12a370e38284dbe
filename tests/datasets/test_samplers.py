"""Batches that adapt together are the same for any number of ranks."""

from __future__ import annotations

import pytest
from mmengine.registry import DATA_SAMPLERS
from torch.utils.data import DataLoader

from tpa_mmseg.datasets import WholeBatchSampler
from tpa_mmseg.errors import TPAError


def batches(images: int, size: int, rank: int, world: int, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What a rank's data loader gives."""
    monkeypatch.setattr('tpa_mmseg.datasets.samplers.get_dist_info', lambda: (rank, world))
    sampler = DATA_SAMPLERS.build(
        {'type': 'WholeBatchSampler', 'batch_size': size, 'dataset': range(images), 'seed': 3}
    )
    assert len(sampler) == len(list(sampler))
    return [batch.tolist() for batch in DataLoader(range(images), batch_size=size, sampler=sampler)]


@pytest.mark.parametrize('world', [2, 3, 8])
@pytest.mark.parametrize(('images', 'size'), [(7, 2), (8, 2), (1, 2), (10, 3), (5, 1)])
def test_ranks_share_the_batches_of_one_rank(
    images: int, size: int, world: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = batches(images, size, 0, 1, monkeypatch)
    assert [index for batch in alone for index in batch] == list(range(images))
    dealt = [batches(images, size, rank, world, monkeypatch) for rank in range(world)]
    assert sorted(batch for rank in dealt for batch in rank) == alone


def test_no_batch_is_refused() -> None:
    with pytest.raises(TPAError, match='at least 1'):
        WholeBatchSampler(range(3), 0)
