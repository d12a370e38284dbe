"""ComparisonHook: a picture of every test image, with what TPA changed in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import HOOKS
from mmseg.structures import SegDataSample

from ..errors import TPAError
from ..io import write_png
from ..visualization import comparison, picture_names, read_image


@HOOKS.register_module()
class ComparisonHook(Hook):
    """Writes one PNG per test image: input, truth, host, TPA and difference, as far as they are there.

    Every rank writes the pictures of its own images.

    Args:
        out_dir: Where to write. Images of several folders keep their folders.
        max_images: Only the first so many images of the dataset; by default all.
        ignore_index: Label of the truth that says nothing.
    """

    def __init__(self, out_dir: str, max_images: int | None = None, ignore_index: int = 255) -> None:
        self.out_dir = Path(out_dir)
        self.max_images = max_images
        self.ignore_index = ignore_index

    def before_test_epoch(self, runner: Runner) -> None:
        """Decides which images are drawn and what their pictures are called, the same on every rank."""
        dataset = runner.test_dataloader.dataset
        paths = [dataset.get_data_info(index)['img_path'] for index in range(len(dataset))]
        names = picture_names(paths)
        self._names = {path: names[path] for path in paths[: self.max_images]}
        self._meta = dataset.metainfo

    def after_test_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: Sequence[SegDataSample] | None = None,
    ) -> None:
        """Draws the images of a batch."""
        for sample in outputs:
            if 'img_path' not in sample:
                raise TPAError('Pictures need the path of each image: add img_path to the meta_keys of PackSegInputs.')
            name = self._names.get(sample.img_path)
            if name is not None:
                self._draw(sample, self.out_dir / name)

    def _draw(self, sample: SegDataSample, path: Path) -> None:
        prediction, truth = _labels(sample, 'pred_sem_seg'), _labels(sample, 'gt_sem_seg')
        if truth is not None and truth.shape != prediction.shape:
            truth = None
        picture = comparison(
            prediction,
            self._meta['classes'],
            host=_labels(sample, 'host_sem_seg'),
            truth=truth,
            image=read_image(sample.img_path),
            palette=self._meta.get('palette'),
            ignore_index=self.ignore_index,
        )
        write_png(path, picture)


def _labels(sample: SegDataSample, field: str) -> np.ndarray | None:
    """(H, W) labels on the CPU, or None where the sample has no such field."""
    return sample.get(field).data.squeeze(0).cpu().numpy() if field in sample else None
