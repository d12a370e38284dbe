"""A few hundred tiny images of the miniature world, in every form of a source, and what one process makes of them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tpa_mmseg.miniature.files import encode, scene
from tpa_mmseg.miniature.world import CLASSES

MODEL = {'classes': list(CLASSES), 'backbone': 'mini-b8'}
#: Height and width of an image, a part of a scene.
SIZE = (40, 48)


def paint(scenes: int) -> dict[str, bytes]:
    """Returns nine parts of each scene as PNG files, by name."""
    height, width = SIZE
    return {
        f'{index:03d}/{top:02d}-{left:03d}.png': encode(
            scene('val', index).image[top : top + height, left : left + width]
        )
        for index in range(scenes)
        for top in (0, 45, 90)
        for left in (0, 60, 120)
    }


def write_files(folder: Path, images: Mapping[str, bytes]) -> Path:
    for name, content in images.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_tar(path: Path, images: Mapping[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, 'w') as tar:
        for name, content in images.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def write_parquet(path: Path, images: Mapping[str, bytes], struct: bool = False) -> Path:
    """Writes images as a column of bytes or, as Hugging Face does, of structs."""
    cells = [{'bytes': content, 'path': name} for name, content in images.items()] if struct else list(images.values())
    pq.write_table(pa.table({'caption': list(images), 'image': cells}), path, row_group_size=7)
    return path


def read_labels(folder: Path) -> dict[str, np.ndarray]:
    """Returns the labels of all shards, by the name of the image."""
    found = {}
    for path in sorted(folder.glob('shards/*/labels.tar')):
        with tarfile.open(path) as tar:
            for member in tar:
                with Image.open(tar.extractfile(member)) as image:
                    found[member.name.removesuffix('.png')] = np.asarray(image)
    return found
