"""Pipeline steps that handle unusual images and name the image that cannot be read."""

from __future__ import annotations

import mmcv
import mmengine.fileio as fileio
from mmcv.transforms import BaseTransform, LoadImageFromFile
from mmseg.datasets.transforms import LoadAnnotations, Resize
from mmseg.registry import TRANSFORMS

from ..errors import TPAError
from ..images import UnreadableImage, open_image


@TRANSFORMS.register_module()
class LoadImage(LoadImageFromFile):
    """``LoadImageFromFile`` with errors that name the image. Gray, RGBA and 16-bit images become 8-bit BGR."""

    def transform(self, results: dict) -> dict:
        path = results['img_path']
        try:
            data = fileio.get(path, backend_args=self.backend_args)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UnreadableImage(
                f'Cannot read image {path} ({reason}). Restore the file or remove it from the dataset.'
            ) from error
        # OpenCV fills the missing rest of a JPEG with gray and only warns.
        truncated = not data or (data[:2] == b'\xff\xd8' and data.rfind(b'\xff\xd9') < 0)
        # MMCV's backends decode it, but they limit neither formats nor pixels.
        with open_image(data, path):
            image = None if truncated else mmcv.imfrombytes(data, flag=self.color_type, backend=self.imdecode_backend)
            if image is None:
                raise ValueError('truncated or not an image')
        results['img'] = image.astype('float32') if self.to_float32 else image
        results['img_shape'] = results['ori_shape'] = image.shape[:2]
        return results


@TRANSFORMS.register_module()
class SafeResize(Resize):
    """``Resize`` that keeps every side at least one pixel long, however thin the image is."""

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
    """``LoadAnnotations`` for labels of one row or column too, with errors that name the label file."""

    def _load_seg_map(self, results: dict) -> None:
        path = results['seg_map_path']
        try:
            with open_image(fileio.get(path, backend_args=self.backend_args), path):
                super()._load_seg_map(results)
        except (OSError, UnreadableImage) as error:
            reason = getattr(error, 'strerror', None) or error.__cause__
            raise TPAError(f'Cannot read labels {path} ({reason}). Prepare the dataset again.') from error
        # mmseg squeezes the labels, which removes the row or column.
        if results['gt_seg_map'].ndim < 2:
            results['gt_seg_map'] = results['gt_seg_map'].reshape(results['ori_shape'])


@TRANSFORMS.register_module()
class ScoreAtThisSize(BaseTransform):
    """Makes the current size of an image its original size: hosts predict labels of this size, not of the file's.

    For protocols that resize images and labels alike and score the result. Place it after that Resize.
    """

    def transform(self, results: dict) -> dict:
        results['ori_shape'] = results['img'].shape[:2]
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}()'


_HARDENED = {'LoadImageFromFile': 'LoadImage', 'Resize': 'SafeResize', 'LoadAnnotations': 'LoadLabels'}


def add_read_checks(pipeline: list[dict]) -> None:
    """Replaces stock steps of a pipeline by those above: the same images, clearer errors."""
    for step in pipeline:
        step['type'] = _HARDENED.get(step['type'], step['type'])
