"""Every form of a source yields the same images as a stream; what cannot be read is named and left out."""

from __future__ import annotations

import gc
import io
import tarfile
import weakref
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bulk.world import write_files, write_parquet, write_tar
from tpa_mmseg.apis import ImageSource
from tpa_mmseg.apis.images import list_images
from tpa_mmseg.bulk import list_parts, pictures, sample
from tpa_mmseg.bulk.pictures import read_pictures
from tpa_mmseg.bulk.source import Part, split
from tpa_mmseg.datasets import PoolOptions
from tpa_mmseg.errors import TPAError


def read(parts: list[Part], column: str | None = None) -> tuple[list[ImageSource], dict[str, str]]:
    """Returns the images of files, and the reasons why others are left out."""
    skipped: dict[str, str] = {}
    return list(read_pictures(parts, skipped.__setitem__, column)), skipped


@pytest.mark.parametrize('form', ('folder', 'pattern', 'list', 'tar', 'compressed tar', 'bytes', 'structs', 'remote'))
def test_every_form_yields_the_same_images(form: str, few: dict[str, bytes], tmp_path: Path) -> None:
    folder = write_files(tmp_path / 'images', few)
    if form == 'folder':
        (folder / 'notes.md').touch()
        (folder / '.hidden.png').touch()
        source = folder
    elif form == 'pattern':
        source = folder / '*' / '*.png'
    elif form == 'list':
        source = folder / 'list.txt'
        source.write_text(
            '\n'.join([*list(few)[:3], *(str(folder / name) for name in list(few)[3:]), '', list(few)[0]])
        )
    elif form.endswith('tar'):
        source = write_tar(tmp_path / 'images.tar', {'notes.json': b'{}', **few})
    elif form == 'remote':
        source = 'memory://images'
        for name, content in few.items():
            fsspec.filesystem('memory').pipe(f'/images/{name}', content)
    else:
        source = write_parquet(tmp_path / 'images.parquet', few, struct=form == 'structs')
    if form.startswith('compressed'):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode='w:gz') as tar:
            tar.add(folder, '')
        source = tmp_path / 'images.tgz'
        source.write_bytes(packed.getvalue())
    found, skipped = read(list_parts([source]))
    assert sorted(image.key for image in found) == sorted(ImageSource('', content).key for content in few.values())
    assert not skipped and len({image.name for image in found}) == len(few)
    if form in ('folder', 'pattern', 'list', 'remote'):
        assert [image.name for image in found] == list(few)
    elif form == 'tar':
        assert [image.name for image in found] == [f'images.tar/{name}' for name in few]
    elif form in ('bytes', 'structs'):
        assert found[12].name == 'images.parquet/00000012'


def test_order_and_draw_are_those_of_one_process(tmp_path: Path) -> None:
    folder = write_files(tmp_path, {name: b'' for name in ('a-b/1.png', 'a/2.png', 'a/b/3.png', 'c.PNG', 'B.jpg')})
    parts = list_parts([folder])
    assert [part.address for part in parts] == [image.path for image in list_images(folder).images]
    drawn = [parts.index(Part(part.address, part.name)) for part in map(unlimited, sample(parts, 3, seed=5))]
    assert drawn == PoolOptions(size=3, seed=5).draw(5)


def unlimited(part: Part) -> Part:
    return Part(part.address, part.name)


@pytest.mark.parametrize('shards', (1, 2, 5, 7, 40))
def test_shards_have_every_image_once(shards: int, few: dict[str, bytes], tmp_path: Path) -> None:
    names = list(few)
    write_files(tmp_path / 'source', {name: few[name] for name in names[:4]})
    write_tar(tmp_path / 'source/a.tar', {name: few[name] for name in names[4:20]})
    write_parquet(tmp_path / 'source/b.parquet', {name: few[name] for name in names[20:]})
    parts = list_parts([tmp_path / 'source'])
    divided = split(parts, shards)
    assert divided == split(parts, shards) and len(divided) <= shards and all(divided)
    keys = [image.key for share in divided for image in read(share)[0]]
    assert sorted(keys) == sorted(ImageSource('', content).key for content in few.values())


def test_sample_of_tars_is_as_large_as_asked_for(few: dict[str, bytes], tmp_path: Path) -> None:
    for number in range(3):
        write_tar(tmp_path / f'{number}.tar', few)
    parts = list_parts([tmp_path])
    assert [len(read(sample(parts, size))[0]) for size in (1, 2, 10)] == [1, 2, 10]


@pytest.mark.parametrize(
    ('source', 'says'),
    (
        ('nowhere', 'Source not found: .*nowhere'),
        ('empty', 'Source not found: .*empty|No images, tar files or Parquet files in .*empty'),
        ('s3://bucket/images', 'Cannot list s3://bucket/images .*s3fs'),
        ('what://bucket', 'Cannot list what://bucket'),
    ),
)
def test_source_without_images_is_one_sentence(source: str, says: str, tmp_path: Path) -> None:
    (tmp_path / 'empty').mkdir()
    with pytest.raises(TPAError, match=says):
        list_parts([source if '://' in source else str(tmp_path / source)])


def test_what_cannot_be_read_is_named_and_the_rest_is_read(
    few: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = next(iter(few.values()))
    monkeypatch.setattr(pictures, 'LARGEST', len(content))
    two = {'good.png': content, 'large.png': content + b'\0'}
    write_files(tmp_path / 'files', two)
    write_tar(tmp_path / 'members.tar', two)
    cells = pa.array([content, content + b'\0', None], pa.binary())
    pq.write_table(pa.table({'jpg': cells}), tmp_path / 'rows.parquet')
    (tmp_path / 'list.txt').write_text('gone.png\ngone.tar\n')
    for name in ('no.tar', 'no.parquet'):
        (tmp_path / name).write_bytes(b'\x80' * 2000)
    whole = write_tar(tmp_path / 'whole.tar', {'1.png': content, '2.png': content}).read_bytes()
    (tmp_path / 'truncated.tar').write_bytes(whole[: whole.index(b'2.png') + 600])
    second = whole.index(b'2.png')
    (tmp_path / 'damaged.tar').write_bytes(whole[:second] + b'\xff' * 512 + whole[second + 512 :])
    found, skipped = read(list_parts([str(tmp_path), str(tmp_path / 'list.txt')]))
    assert [image.name for image in found] == [
        'damaged.tar/1.png',
        'files/good.png',
        'members.tar/good.png',
        'rows.parquet/00000000',
        'truncated.tar/1.png',
        'whole.tar/1.png',
        'whole.tar/2.png',
    ]
    assert skipped.pop('rows.parquet/00000002') == 'empty'
    for name in ('files/large.png', 'members.tar/large.png', 'rows.parquet/00000001'):
        assert skipped.pop(name) == f'{len(content) + 1:,} bytes, more than {len(content):,}'
    assert 'damaged' in skipped.pop('damaged.tar') and 'No such file' in skipped.pop('gone.tar')
    assert sorted(skipped) == ['gone.png', 'no.parquet', 'no.tar', 'truncated.tar']


def test_hostile_tar_cannot_fill_the_memory_or_leave_its_folder(few: dict[str, bytes], tmp_path: Path) -> None:
    name, content = next(iter(few.items()))
    path = write_tar(tmp_path / 'a.tar', {'../../' + name: content, '/etc/./x.png': content})
    header = tarfile.TarInfo('pax')
    header.type, header.size = tarfile.XHDTYPE, 1 << 33
    path.write_bytes(path.read_bytes().rstrip(b'\0').ljust(2 * len(path.read_bytes()), b'\0'))
    whole = path.read_bytes()
    end = -(-len(whole.rstrip(b'\0')) // 512) * 512
    path.write_bytes(whole[:end] + header.tobuf(tarfile.GNU_FORMAT) + b'\0' * 1024)
    found, skipped = read(list_parts([path]))
    assert [image.name for image in found] == [f'a.tar/{name}', 'a.tar/etc/x.png']
    assert 'a header of 8589934592 bytes' in skipped['a.tar']


def test_stream_holds_no_image_but_the_last(few: dict[str, bytes], tmp_path: Path) -> None:
    content = next(iter(few.values()))
    write_tar(tmp_path / 'a.tar', {f'{number}.png': content for number in range(300)})
    write_parquet(tmp_path / 'b.parquet', {f'{number}': content for number in range(300)})
    alive: weakref.WeakSet[ImageSource] = weakref.WeakSet()
    for number, image in enumerate(read_pictures(list_parts([tmp_path]), print)):
        alive.add(image)
        assert len(alive) <= 2
        if number == 298:
            members = [each for each in gc.get_objects() if issubclass(type(each), tarfile.TarInfo)]
            assert len(members) <= 2
    assert number == 599


def test_column_of_images_is_found_or_asked_for(few: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / 'two.parquet'
    pq.write_table(pa.table({'mask': list(few.values()), 'image': list(few.values()), 'text': list(few)}), path)
    with pytest.raises(TPAError, match='pass --image-column .* Its columns: mask, image, text'):
        read(list_parts([path]))
    with pytest.raises(TPAError, match='Its columns: mask, image, text'):
        read(list_parts([path]), 'text')
    assert len(read(list_parts([path]), 'image')[0]) == len(few)
