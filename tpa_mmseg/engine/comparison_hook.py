"""ComparisonHook: a figure of every test image that shows what TPA changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import HOOKS
from mmseg.structures import SegDataSample

from ..errors import TPAError
from ..io import write_png
from ..options import Range
from ..visualization import comparison, figure_names, read_image


@HOOKS.register_module()
class ComparisonHook(Hook):
    """Writes one PNG per test image: input, ground truth, host, TPA and difference, as far as they are available.

    Every rank writes the figures of its own images.

    Args:
        out_dir: Output folder. Images of several folders keep their folders.
        max_images: Number of images to draw, from the start of the dataset. Default: all.
        ignore_index: Label of ground-truth pixels that are not scored.
        font: Font file for class names, e.g. in Chinese. Default: ``TPA_FONT``, otherwise DejaVu Sans.
    """

    def __init__(
        self,
        out_dir: str,
        max_images: Annotated[int, Range(0)] | None = None,
        ignore_index: int = 255,
        font: str | None = None,
    ) -> None:
        self.out_dir = Path(out_dir)
        self.max_images = max_images
        self.ignore_index = ignore_index
        self.font = font

    def before_test_epoch(self, runner: Runner) -> None:
        """Chooses the images to draw and the names of their figures, the same on every rank."""
        dataset = runner.test_dataloader.dataset
        paths = [dataset.get_data_info(index)['img_path'] for index in range(len(dataset))]
        names = figure_names(paths)
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
                raise TPAError(
                    'ComparisonHook needs the path of each image. Add img_path to the meta_keys of PackSegInputs.'
                )
            name = self._names.get(sample.img_path)
            if name is not None:
                self._draw(sample, self.out_dir / name)

    def _draw(self, sample: SegDataSample, path: Path) -> None:
        prediction, ground_truth = _labels(sample, 'pred_sem_seg'), _labels(sample, 'gt_sem_seg')
        if ground_truth is not None and ground_truth.shape != prediction.shape:
            ground_truth = None
        figure = comparison(
            prediction,
            self._meta['classes'],
            host=_labels(sample, 'host_sem_seg'),
            ground_truth=ground_truth,
            image=read_image(sample.img_path),
            palette=self._meta.get('palette'),
            ignore_index=self.ignore_index,
            font=self.font,
        )
        write_png(path, figure)


def _labels(sample: SegDataSample, field: str) -> np.ndarray | None:
    """Returns (H, W) labels on the CPU, or None if the sample does not have the field."""
    return sample.get(field).data.squeeze(0).cpu().numpy() if field in sample else None
