"""Pipeline steps that cope with odd images, and say which image cannot be read."""

from __future__ import annotations

import mmcv
import mmengine.fileio as fileio
from mmcv.transforms import LoadImageFromFile
from mmseg.datasets.transforms import Resize
from mmseg.registry import TRANSFORMS

from ..errors import TPAError


@TRANSFORMS.register_module()
class LoadImage(LoadImageFromFile):
    """``LoadImageFromFile`` whose errors name the image and say what to do. Grey, RGBA and 16-bit become 8-bit BGR."""

    def transform(self, results: dict) -> dict:
        path = results['img_path']
        try:
            data = fileio.get(path, backend_args=self.backend_args)
        except OSError as error:
            reason = error.strerror or str(error)
            raise TPAError(f'The image {path} cannot be read ({reason}): bring it back or take it off the list.') from error
        # OpenCV fills the missing rest of a JPEG with grey and only warns.
        truncated = data[:2] == b'\xff\xd8' and data.rfind(b'\xff\xd9') < 0
        try:
            image = None if truncated else mmcv.imfrombytes(data, flag=self.color_type, backend=self.imdecode_backend)
        except Exception as error:  # every decoding backend has exceptions of its own
            raise TPAError(f'The image {path} cannot be decoded ({error}): replace it or take it off the list.') from error
        if image is None:
            raise TPAError(f'The image {path} is truncated or not an image: replace it or take it off the list.')
        results['img'] = image.astype('float32') if self.to_float32 else image
        results['img_shape'] = results['ori_shape'] = image.shape[:2]
        return results


@TRANSFORMS.register_module()
class SafeResize(Resize):
    """``Resize`` that leaves every side at least one pixel, however thin the image is."""

    def _resize_img(self, results: dict) -> None:
        height, width = results['img'].shape[:2]
        new = mmcv.rescale_size((width, height), results['scale'])
        if not self.keep_ratio or min(new) > 0:
            super()._resize_img(results)
            return
        new = tuple(max(1, side) for side in new)
        results['img'] = mmcv.imresize(image, new, interpolation=self.interpolation, backend=self.backend)
        results['img_shape'] = results['img'].shape[:2]
        results['scale_factor'] = (new[0] / width, new[1] / height)
        results['keep_ratio'] = self.keep_ratio


_HARDENED = {'LoadImageFromFile': 'LoadImage', 'Resize': 'SafeResize'}


def harden_pipeline(pipeline: list[dict]) -> None:
    """Puts the steps above in the place of their stock versions: the same numbers, clear errors."""
    for step in pipeline:
        step['type'] = _HARDENED.get(step['type'], step['type'])
