"""Archives, folders, annotations and MATLAB files from strangers: one message each, no crash, no flood."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from scipy.io import savemat
from tpa_tools.prepare import FILE_MB, JSON_MB

from tests.prepare import archives
from tests.prepare.archives import context_map, write_folder, write_tar, write_zip
from tpa_mmseg.errors import TPAError
from tpa_mmseg.prepare import coco_object, prepare
from tpa_mmseg.prepare.context import from_map
from tpa_mmseg.prepare.sources import Limits, Sources

SMALL = Limits(file_mb=0.001, json_mb=0.002)
NAN, INFINITE = float('nan'), float('inf')

MASKS = {
    'counts that wrap to the size': {'size': [2, 3], 'counts': [2**63, 2**63, 6]},
    'counts that wrap to 32 bits': {'size': [2, 3], 'counts': [2**32, 6]},
    'negative counts': {'size': [2, 3], 'counts': [2**32, 6 - 2**32]},
    'counts of floats': {'size': [2, 3], 'counts': [2.5, 3.5]},
    'counts of NaN': {'size': [2, 3], 'counts': [NAN]},
    'counts of text': {'size': [2, 3], 'counts': ['a', 'b']},
    'no counts': {'size': [2, 3]},
    'empty counts': {'size': [2, 3], 'counts': []},
    'null': {'size': [2, 3], 'counts': None},
    'a string of many pixels': {'size': [2, 3], 'counts': 'ooo1' * 200},
    'a string of endless bits': {'size': [2, 3], 'counts': 'o' * 1000 + '1'},
    'another size': {'size': [2**31, 2**31], 'counts': '1'},
    'a size of text': {'size': 'ab', 'counts': '1'},
    'corners far outside': [[0, 0, 1e9, 0, 1e9, 1e9]],
    'corners beyond int64': [[0, 0, 1e300, 0, 1e300, 1e300]],
    'a huge integer': [[0, 0, 10**400, 0, 1, 1]],
    'corners of NaN': [[0, 0, NAN, 0, 3, 3]],
    'corners at infinity': [[0, 0, INFINITE, 0, 3, 3]],
    'an endless outline': [[0, 0, 3, 2] * 100_000],
    'corners of text': [['a'] * 8],
    'an RLE among polygons': [dict.fromkeys('abcd', 1) | {'size': [2, 3], 'counts': [2**62, 2**62]}],
    'nested corners': [[[0, 0]] * 8],
    'a text': 'abcdefgh',
    'a number': 5,
}


def test_no_hostile_mask_ends_the_process(tmp_path):
    """In a process of its own, which a segmentation fault would end. Every mask is one message with its id."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException), (tmp_path / 'messages').open('w') as file:
            for number, mask in enumerate(MASKS.values(), 900):
                item = {'id': number, 'category_id': 1, 'segmentation': mask}
                with suppress(BaseException), pytest.raises(ValueError) as refused:
                    coco_object.draw({'size': (2, 3), 'objects': [item]})
                print(refused.value, file=file, flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    messages = (tmp_path / 'messages').read_text().splitlines()
    assert status == 0, f'ended after {len(messages)} masks'
    assert len(messages) == len(MASKS)
    assert all(f'annotation {900 + i}: it ' in message for i, message in enumerate(messages)), messages


@pytest.mark.parametrize('size', [(10**6, 10**6), (-1, 5), (0, 5), ('a', 5), (None, None), (2.5, 2), (True, 3)])
def test_an_image_of_an_impossible_size_is_refused(size):
    with pytest.raises(ValueError, match='which is not that of an image'):
        coco_object.draw({'size': size, 'objects': []})


@pytest.mark.parametrize('category', [0, 1.5, None, [], 'cat', True])
def test_an_unknown_category_is_named_with_its_annotation(category):
    with pytest.raises(ValueError, match=r'category .* \(annotation 7\)'):
        coco_object.draw({'size': (2, 3), 'objects': [{'id': 7, 'category_id': category, 'segmentation': []}]})


IMAGES = b'"images": [{"id": 7, "height": 20, "width": 30}]'


@pytest.mark.parametrize(
    ('content', 'reason'),
    [
        (b'[' * 200_000, 'nested too deeply'),
        (b'{"images": ' * 100_000, 'nested too deeply'),
        (b'{"images": [], "images": []}', 'a key occurs twice'),
        (b'{"images": [NaN]}', 'NaN is not JSON'),
        (b'{"images": [-Infinity]}', '-Infinity is not JSON'),
        (b'{"images": ' + b'9' * 5000 + b'}', 'not an annotation file'),
        (b'\xff\xfe\x00', 'not an annotation file'),
        (b'[]', 'not an annotation file'),
        (b'{"images": 5}', 'not an annotation file'),
        (b'{"images": [{"id": "x", "height": 1, "width": 1}], "annotations": []}', 'not an annotation file'),
        (b'{"images": [{"id": [], "height": 1, "width": 1}], "annotations": []}', 'not an annotation file'),
        (b'{' + IMAGES + b', "annotations": [5]}', 'not an annotation file'),
        (b'{' + IMAGES + b', "annotations": [{"image_id": {}}]}', 'not an annotation file'),
        (b'{' + IMAGES + b', "annotations": [{"image_id": 7}]}', r'Image 7 in .*category None \(annotation None\)'),
    ],
)
@pytest.mark.parametrize('dataset', ['coco_object', 'context'])
def test_odd_json_is_one_message(tmp_path, content, reason, dataset):
    if dataset == 'coco_object':
        name, images = 'instances_val2017.json', write_zip(tmp_path / 'images.zip', archives.coco_images(1))
    else:
        name, images = 'trainval_merged.json', write_tar(tmp_path / 'images.tar', archives.voc2010(1))
        reason = reason if 'annotation' not in reason else 'is not the trainval_merged.json'
    labels = write_zip(tmp_path / 'labels.zip', {name: content})
    with pytest.raises(TPAError, match=reason):
        prepare(dataset, [images, labels], tmp_path / 'out')


def mat(**values) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, values)
    return buffer.getvalue()


@pytest.mark.parametrize(
    'content',
    [
        mat(LabelMap=np.full((2, 3), NAN)),
        mat(LabelMap=np.full((2, 3), -1, np.int16)),
        mat(LabelMap=np.full((2, 3), 460, np.uint16)),
        mat(LabelMap=np.zeros((2, 3, 4), np.uint16)),
        mat(LabelMap=np.zeros((0, 3), np.uint16)),
        mat(LabelMap=np.zeros((2, 3), complex)),
        mat(LabelMap='text'),
        mat(LabelMap=np.array([[1], [[2]]], dtype=object)),
        mat(LabelMap={'a': 1}),
        mat(Other=np.zeros((2, 3), np.uint16)),
        mat(LabelMap=np.zeros((2, 3), np.uint16)) + mat(LabelMap=np.zeros((2, 3), np.uint16))[128:],
        context_map(np.zeros((20_000, 10_000), np.uint8)),
        mat(LabelMap=np.zeros((2, 3), np.uint16))[:150],
        b'MATLAB 7.3 MAT-file' + bytes(200),
        b'',
    ],
)
def test_an_odd_matlab_file_is_one_message(content):
    with warnings.catch_warnings(), pytest.raises(ValueError, match=r'is not a MATLAB file with a LabelMap \(.+\)'):
        warnings.simplefilter('ignore')  # scipy names variables that occur twice
        from_map(content)


@pytest.mark.parametrize('write', [write_zip, write_tar, write_folder])
def test_a_file_beyond_the_limit_is_refused_from_its_header(tmp_path, write):
    source = write(
        tmp_path / 'source', {'val/a.png': bytes(2000), 'val/b.json': bytes(2000), 'val/c.json': bytes(3000)}
    )
    with Sources([source], SMALL) as sources:
        for name in ('a.png', 'c.json'):
            with pytest.raises(TPAError, match=rf'{name}.* MB, but the limit is .*--max-file-mb or --max-json-mb'):
                sources.one(f'val/{name}').read()
        assert sources.one('val/b.json').read() == bytes(2000)


def test_the_tool_has_the_limits_of_the_package():
    assert Limits() == Limits(FILE_MB, JSON_MB)


def test_a_header_that_promises_less_than_there_is_bounds_what_is_read(tmp_path):
    path = write_zip(tmp_path / 'a.zip', {'val/a.png': bytes(10**6)})
    content = bytearray(path.read_bytes())
    for size in (i for i in range(len(content)) if content[i : i + 4] == (10**6).to_bytes(4, 'little')):
        content[size : size + 4] = (100).to_bytes(4, 'little')
    path.write_bytes(content)
    with Sources([path], SMALL) as sources, pytest.raises(TPAError, match='Cannot read .*a.png.* download it again'):
        sources.one('val/a.png').read()


@pytest.mark.parametrize('kind', [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_without_a_bound_are_refused(tmp_path, kind):
    with zipfile.ZipFile(tmp_path / 'a.zip', 'w', kind) as archive:
        archive.writestr('val/a.png', bytes(500))
    with Sources([tmp_path / 'a.zip']) as sources, pytest.raises(TPAError, match='unusual compression'):
        sources.one('val/a.png').read()


def tar_with(kind: bytes, size: int, body: bytes = b'') -> bytes:
    member = tarfile.TarInfo('val/a.png')
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT) + body


@pytest.mark.parametrize(
    ('content', 'reason'),
    [
        (tar_with(tarfile.GNUTYPE_SPARSE, 0), 'sparse file|could not be opened'),
        (tar_with(tarfile.REGTYPE, -512), 'negative size|could not be opened'),
        (tar_with(tarfile.REGTYPE, 0) + tar_with(tarfile.REGTYPE, -512), 'negative size'),
        (tar_with(tarfile.REGTYPE, 0) + tar_with(tarfile.GNUTYPE_LONGNAME, 10**12), 'huge header'),
        (tar_with(tarfile.REGTYPE, 0) + tar_with(tarfile.XHDTYPE, 10**12), 'huge header'),
    ],
)
@pytest.mark.parametrize('pack', [bytes, gzip.compress], ids=['tar', 'tar.gz'])
def test_tricks_of_tar_are_refused(tmp_path, content, reason, pack):
    (tmp_path / 'a.tar').write_bytes(pack(content + bytes(10_240)))
    with pytest.raises(TPAError, match=reason):
        Sources([tmp_path / 'a.tar'])


@pytest.mark.parametrize('headers', [{'GNU.sparse.major': '1', 'GNU.sparse.minor': '0'}, {'size': '-512'}])
def test_tricks_of_pax_headers_are_refused(tmp_path, headers):
    with tarfile.open(tmp_path / 'a.tar', 'w', format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo('first'))
        member = tarfile.TarInfo('val/a.png')
        member.pax_headers = headers
        archive.addfile(member)
    with pytest.raises(TPAError, match='sparse file|negative size'):
        Sources([tmp_path / 'a.tar'])


def test_links_of_an_archive_are_not_followed(tmp_path):
    (tmp_path / 'secret').write_text('secret')
    with tarfile.open(tmp_path / 'a.tar', 'w') as archive:
        for kind, name in (
            (tarfile.SYMTYPE, 'val/a.png'),
            (tarfile.LNKTYPE, 'val/b.png'),
            (tarfile.FIFOTYPE, 'val/c.png'),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, str(tmp_path / 'secret')
            archive.addfile(member)
    with Sources([tmp_path / 'a.tar']) as sources:
        assert sources.files(r'val/(\w)\.png') == {}


@pytest.mark.parametrize('symlink', [False, True])
@pytest.mark.parametrize('make', [os.mkfifo, lambda path: path.symlink_to('/dev/zero')], ids=['pipe', 'device'])
def test_pipes_and_devices_in_a_folder_are_refused(tmp_path, symlink, make):
    folder = write_folder(tmp_path / 'source', archives.voc(1))
    image = next(folder.rglob('2007_000000.jpg'))
    image.unlink()
    make(image)
    with pytest.raises(TPAError, match=r'2007_000000\.jpg is a pipe or a device'):
        prepare('voc', [folder], tmp_path / 'out', symlink=symlink)


def test_too_little_memory_is_a_message(tmp_path, monkeypatch):
    source = write_zip(tmp_path / 'a.zip', {'val/a.png': b'1'})

    def exhausted(*_: object) -> None:
        raise MemoryError

    with Sources([source]) as sources:
        monkeypatch.setattr(zipfile.ZipExtFile, 'read', exhausted)
        with pytest.raises(TPAError, match='Not enough memory to read val/a.png in .*a.zip'):
            sources.one('val/a.png').read()


def test_json_of_annotations_has_no_infinite_corner(tmp_path):
    """1e999 is valid JSON and becomes infinity."""
    annotation = '{"id": 3, "image_id": 7, "category_id": 1, "segmentation": [[0, 0, 1e999, 0, 5, 5]]}'
    content = f'{{{IMAGES.decode()}, "annotations": [{annotation}]}}'.encode()
    assert json.loads(content)['annotations'][0]['segmentation'][0][2] == INFINITE
    images = write_zip(tmp_path / 'images.zip', archives.coco_images(1))
    labels = write_zip(tmp_path / 'labels.zip', {'instances_val2017.json': content})
    with pytest.raises(TPAError, match=r'Image 7 in .*unusable annotation 3: it has a polygon far outside'):
        prepare('coco_object', [images, labels], tmp_path / 'out')
