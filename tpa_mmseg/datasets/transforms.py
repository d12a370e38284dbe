"""Pipeline steps that cope with odd images, and say which image cannot be read."""

from __future__ import annotations

import mmcv
import mmengine.fileio as fileio
from mmcv.transforms import BaseTransform, LoadImageFromFile
from mmseg.datasets.transforms import LoadAnnotations, Resize
from mmseg.registry import TRANSFORMS

from ..errors import TPAError


@TRANSFORMS.register_module()
class LoadImage(LoadImageFromFile):
    """``LoadImageFromFile`` whose errors name the image and say what to do. Gray, RGBA and 16-bit become 8-bit BGR."""

    def transform(self, results: dict) -> dict:
        path = results['img_path']
        try:
            data = fileio.get(path, backend_args=self.backend_args)
        except OSError as error:
            reason = error.strerror or str(error)
            raise TPAError(
                f'The image {path} cannot be read ({reason}): bring it back or take it off the list.'
            ) from error
        # OpenCV fills the missing rest of a JPEG with gray and only warns.
        truncated = not data or (data[:2] == b'\xff\xd8' and data.rfind(b'\xff\xd9') < 0)
        try:
            image = None if truncated else mmcv.imfrombytes(data, flag=self.color_type, backend=self.imdecode_backend)
        except Exception as error:  # every decoding backend has exceptions of its own
            raise TPAError(
                f'The image {path} cannot be decoded ({error}): replace it or take it off the list.'
            ) from error
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
        results['img'] = mmcv.imresize(results['img'], new, interpolation=self.interpolation, backend=self.backend)
        results['img_shape'] = results['img'].shape[:2]
        results['scale_factor'] = (new[0] / width, new[1] / height)
        results['keep_ratio'] = self.keep_ratio


@TRANSFORMS.register_module()
class LoadLabels(LoadAnnotations):
    """``LoadAnnotations`` that reads labels of one row or column too, and names a label file it cannot read."""

    def _load_seg_map(self, results: dict) -> None:
        path = results['seg_map_path']
        try:
            super()._load_seg_map(results)
        except (OSError, AttributeError) as error:  # a file that is no picture decodes to None
            reason = getattr(error, 'strerror', None) or 'not a label picture'
            raise TPAError(f'The labels {path} cannot be read ({reason}): prepare the dataset again.') from error
        # mmseg squeezes the labels, which takes the row or column away.
        if results['gt_seg_map'].ndim < 2:
            results['gt_seg_map'] = results['gt_seg_map'].reshape(results['ori_shape'])


@TRANSFORMS.register_module()
class ScoreAtThisSize(BaseTransform):
    """From here on an image counts as original: hosts give labels of its present size, not of the file's.

    For protocols that resize image and label alike and score the result. Stands after that Resize.
    """

    def transform(self, results: dict) -> dict:
        results['ori_shape'] = results['img'].shape[:2]
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}()'


_HARDENED = {'LoadImageFromFile': 'LoadImage', 'Resize': 'SafeResize', 'LoadAnnotations': 'LoadLabels'}


def add_read_checks(pipeline: list[dict]) -> None:
    """Puts the steps above in the place of their stock versions: the same numbers, clear errors."""
    for step in pipeline:
        step['type'] = _HARDENED.get(step['type'], step['type'])
