"""MMSegmentation's data preprocessor for batches whose images differ in size."""

from __future__ import annotations

from typing import Any

from mmseg.models.data_preprocessor import SegDataPreProcessor
from mmseg.registry import MODELS


@MODELS.register_module()
class TPADataPreProcessor(SegDataPreProcessor):
    """Like ``SegDataPreProcessor``, but a test batch of different sizes stays a list of (3, H, W) images.

    Hosts give every image of such a list the numbers it gets alone. Images in pinned memory are copied to the GPU while
    it computes.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._non_blocking = True

    def forward(self, data: dict, training: bool = False) -> dict:
        sizes = {tuple(image.shape[-2:]) for image in data['inputs']}
        if training or len(sizes) == 1:
            return super().forward(data, training)
        samples = data.get('data_samples')
        single = [
            super(TPADataPreProcessor, self).forward(
                {'inputs': [image], 'data_samples': None if samples is None else [samples[i]]}
            )
            for i, image in enumerate(data['inputs'])
        ]
        return {
            'inputs': [part['inputs'][0] for part in single],
            'data_samples': None if samples is None else [part['data_samples'][0] for part in single],
        }
