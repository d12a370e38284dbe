"""Small archives in the layouts in which the sites ship their datasets."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

SIZE = (20, 30)  # height, width


def encoded(pixels: np.ndarray, kind: str, palette: bool = False) -> bytes:
    """A picture file."""
    image = Image.fromarray(pixels)
    if palette:
        image.putpalette(list(range(256)) * 3)
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def photo(seed: int, kind: str = 'JPEG', size: Sequence[int] = SIZE) -> bytes:
    return encoded(np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8), kind)


def label(values: Sequence[int], size: Sequence[int] = SIZE, palette: bool = False) -> bytes:
    """A label picture with a stripe of each value."""
    columns = np.resize(np.repeat(np.asarray(values, dtype=np.uint8), 3), size[1])
    return encoded(np.tile(columns, (size[0], 1)), 'PNG', palette)


def pixels(content: bytes | Path) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content) if isinstance(content, bytes) else content))


def write_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name in {f'{Path(name).parents[-2]}/' for name in files if '/' in name}:
            archive.writestr(name, b'')
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, 'w:gz' if path.suffix == '.gz' else 'w') as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_folder(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def voc(count: int = 4) -> dict[str, bytes]:
    """VOCtrainval_11-May-2012.tar: every second image is of the val split, and one has no segmentation."""
    root, stems = 'VOCdevkit/VOC2012', [f'2007_{i:06d}' for i in range(2 * count)]
    files = {f'{root}/JPEGImages/{stem}.jpg': photo(i) for i, stem in enumerate([*stems, '2008_000001'])}
    files |= {
        f'{root}/SegmentationClass/{stem}.png': label([0, i % 21, 255], palette=True) for i, stem in enumerate(stems)
    }
    files |= {f'{root}/SegmentationObject/{stem}.png': label([1]) for stem in stems}
    for split, chosen in {'val': stems[::2], 'train': stems[1::2], 'trainval': stems}.items():
        files[f'{root}/ImageSets/Segmentation/{split}.txt'] = ''.join(f'{stem}\n' for stem in chosen).encode()
    return files


def voc2010(count: int = 3) -> dict[str, bytes]:
    """VOCtrainval_03-May-2010.tar: the first half of the images is of the train split."""
    root, stems = 'VOCdevkit/VOC2010', [f'2008_{i:06d}' for i in range(2 * count)]
    files = {f'{root}/JPEGImages/{stem}.jpg': photo(i) for i, stem in enumerate(stems)}
    files[f'{root}/ImageSets/Main/train.txt'] = '\n'.join(stems[:count]).encode()
    files[f'{root}/ImageSets/Main/val.txt'] = '\n'.join(stems[count:]).encode()
    return files


def context_json(regions: Mapping[str, Sequence[tuple[int, np.ndarray]]], phases: Mapping[str, str]) -> bytes:
    """trainval_merged.json: regions are pairs of category and mask."""
    identity = {stem: int(stem.replace('_', '')) for stem in phases}
    images = [
        {'file_name': f'{stem}.jpg', 'image_id': identity[stem], 'phase': phase, 'height': SIZE[0], 'width': SIZE[1]}
        for stem, phase in phases.items()
    ]
    segments = [
        {
            'id': number,
            'image_id': identity[stem],
            'category_id': category,
            'segmentation': {'size': list(SIZE), 'counts': packed(mask)},
            'area': int(mask.sum()),
            'bbox': [0, 0, 1, 1],
            'iscrowd': 0,
            'parts': [{'part_id': 3, 'segmentation': {'size': list(SIZE), 'counts': packed(mask)}}],
        }
        for number, (stem, category, mask) in enumerate((s, c, m) for s, found in regions.items() for c, m in found)
    ]
    content = {
        'info': {'version': '4.0'},
        'images': images,
        'categories': [{'category_id': 2, 'name': 'aeroplane', 'supercategory': 'object', 'parts': [3]}],
        'parts': [{'part_id': 3, 'name': 'body', 'superpart': 'none'}],
        'annos_segmentation': segments,
        'annos_occlusion': [
            {'image_id': image['image_id'], 'ne': 1, 'edges': {'indices': [[1, 2]]}} for image in images
        ],
        'annos_boundary': [{'image_id': image['image_id'], 'boundary_mask': {'counts': '0'}} for image in images],
        'annos_joints': [],
    }
    return json.dumps(content).encode()


def context_map(numbers: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, {'LabelMap': numbers.astype(np.uint16)}, do_compression=True)
    return buffer.getvalue()


def coco_images(count: int = 4, split: str = 'val') -> dict[str, bytes]:
    """val2017.zip"""
    return {f'{split}2017/{i * 7:012d}.jpg': photo(i) for i in range(1, count + 1)}


def coco_stuff(values: Sequence[Sequence[int]], split: str = 'val') -> dict[str, bytes]:
    """stuffthingmaps_trainval2017.zip: a label with these ids per image, and one of the other split."""
    other = 'train' if split == 'val' else 'val'
    files = {f'{other}2017/{9:012d}.png': label([0])}
    return files | {f'{split}2017/{i * 7:012d}.png': label(ids) for i, ids in enumerate(values, start=1)}


def cityscapes(stems: Sequence[str], values: Sequence[int], size: Sequence[int] = SIZE) -> tuple[dict, dict]:
    """leftImg8bit_trainvaltest.zip and gtFine_trainvaltest.zip. Stems are val/<city>/<city>_000000_000019."""
    images = {f'leftImg8bit/{stem}_leftImg8bit.png': photo(i, 'PNG', size) for i, stem in enumerate(stems)}
    labels = {}
    for stem in stems:
        labels[f'gtFine/{stem}_gtFine_labelIds.png'] = label(values, size)
        labels[f'gtFine/{stem}_gtFine_color.png'] = label([1], size)
        labels[f'gtFine/{stem}_gtFine_polygons.json'] = b'{}'
    return {**images, 'README': b'', 'license.txt': b''}, {**labels, 'README': b'', 'license.txt': b''}


def ade20k(count: int = 3) -> dict[str, bytes]:
    """ADEChallengeData2016.zip"""
    root, files = 'ADEChallengeData2016', {}
    for folder, name in (('validation', 'val'), ('training', 'train')):
        for i in range(1, count + 1):
            files[f'{root}/images/{folder}/ADE_{name}_{i:08d}.jpg'] = photo(i)
            files[f'{root}/annotations/{folder}/ADE_{name}_{i:08d}.png'] = label([0, i, 150])
    return files | {f'{root}/objectInfo150.txt': b'', f'{root}/sceneCategories.txt': b''}


def packed(mask: np.ndarray) -> str:
    """COCO's packed string for a mask."""
    flat = np.concatenate([[0], mask.T.ravel().astype(int), [2]])
    edges = np.flatnonzero(np.diff(flat))
    counts = np.diff(np.concatenate([[0], edges])).tolist()
    text = ''
    for i, count in enumerate(counts):
        number = count - counts[i - 2] if i > 2 else count
        while True:
            bits, number = number & 31, number >> 5
            last = number == (-1 if bits & 16 else 0)
            text += chr(48 + bits + (0 if last else 32))
            if last:
                break
    return text
