"""WholeBatchSampler: for hosts that adapt to the images of a batch together."""

from __future__ import annotations

from collections.abc import Iterator, Sized

from mmengine.dist import get_dist_info
from mmengine.registry import DATA_SAMPLERS
from torch.utils.data import Sampler

from ..errors import TPAError


# In mmengine's own registry, in which the Runner looks up samplers without a scope.
@DATA_SAMPLERS.register_module()
class WholeBatchSampler(Sampler):
    """Distributes whole batches over ranks, in the order of the dataset: the same batches for any number of ranks.

    MMEngine's sampler distributes single images, so that the other images of a batch depend on the number of ranks.
    Every image comes once; some ranks may have one batch less than others.

    Args:
        dataset: The dataset.
        batch_size: Of the data loader.
        seed: Accepted because MMEngine passes it; nothing is shuffled.
    """

    def __init__(self, dataset: Sized, batch_size: int, seed: int | None = None) -> None:
        if batch_size < 1:
            raise TPAError(f'WholeBatchSampler.batch_size must be at least 1, not {batch_size}.')
        rank, world = get_dist_info()
        starts = range(rank * batch_size, len(dataset), world * batch_size)
        self.indices = [index for start in starts for index in range(start, min(start + batch_size, len(dataset)))]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)

    def set_epoch(self, epoch: int) -> None:
        """MMEngine calls it in training; every epoch is the same here."""
