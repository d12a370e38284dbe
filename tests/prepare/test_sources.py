"""Archives, folders and files as sources."""

from __future__ import annotations

import pytest

from tests.prepare.archives import write_folder, write_tar, write_zip
from tpa_mmseg.errors import TPAError
from tpa_mmseg.prepare.sources import Sources

FILES = {'top/val/a.jpg': b'a' * 3000, 'top/val/b.jpg': b'b' * 3000, 'top/val/c.txt': b'c'}


@pytest.fixture(params=['zip', 'tar', 'tar.gz', 'folder'])
def source(request, tmp_path):
    write = {'zip': write_zip, 'folder': write_folder}.get(request.param, write_tar)
    return write(tmp_path / f'source.{request.param}', FILES)


def test_files_are_found_by_the_end_of_their_path(source):
    with Sources([source]) as sources:
        found = sources.files(r'val/(\w+)\.jpg')
        assert {name: member.read() for name, member in found.items()} == {'a': b'a' * 3000, 'b': b'b' * 3000}
        assert sources.one(r'val/c\.txt').read() == b'c'
        assert sources.one(r'al/c\.txt') is None


def test_a_name_ends_at_a_folder(tmp_path):
    archive = write_zip(tmp_path / 'a.zip', {'panoptic_val2017/1.png': b'', 'x/val2017/2.png': b''})
    with Sources([archive]) as sources:
        assert list(sources.files(r'val2017/(\d+)\.png')) == ['2']


def test_several_sources_are_searched_together(tmp_path):
    first, second = write_zip(tmp_path / 'a.zip', {'x/a.jpg': b'a'}), write_tar(tmp_path / 'b.tar', {'x/b.jpg': b'b'})
    with Sources([first, second]) as sources:
        assert list(sources.files(r'x/(\w)\.jpg')) == ['a', 'b']
        places = [member.place for member in sources.files(r'x/(\w)\.jpg').values()]
        assert places == sorted(set(places))


def test_two_files_for_one_name_are_refused(tmp_path):
    folder = write_folder(tmp_path / 'VOCdevkit', {'VOC2010/a.jpg': b'', 'VOC2012/a.jpg': b''})
    with Sources([folder]) as sources, pytest.raises(TPAError, match='Two files for a: .*VOC2010.* and .*VOC2012.*'):
        sources.files(r'(\w)\.jpg')


@pytest.mark.parametrize('write', [write_zip, write_tar])
@pytest.mark.parametrize('name', ['../evil.jpg', 'a/../../evil.jpg', '/etc/evil.jpg'])
def test_a_path_that_leads_out_of_the_archive_is_refused(tmp_path, write, name):
    archive = write(tmp_path / 'archive', {'val/a.jpg': b'', name: b''})
    with pytest.raises(TPAError, match='is outside of the archive'):
        Sources([archive])


@pytest.mark.parametrize('ending', ['zip', 'tar', 'tar.gz'])
def test_a_truncated_archive_is_named(tmp_path, ending):
    write = write_zip if ending == 'zip' else write_tar
    archive = write(tmp_path / f'cut.{ending}', {f'val/{i}.jpg': bytes(range(256)) * 40 for i in range(5)})
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size * 2 // 3])
    with pytest.raises(TPAError, match=rf'Cannot read .*cut\.{ending} .* download it again'):
        Sources([archive])


def test_damage_inside_an_archive_is_found_where_it_is(tmp_path):
    archive = write_zip(tmp_path / 'a.zip', FILES)
    content = bytearray(archive.read_bytes())
    place = content.index(b'top/val/b.jpg') + 20
    content[place] ^= 255
    archive.write_bytes(content)
    with Sources([archive]) as sources, pytest.raises(TPAError, match=r'Cannot read top/val/b\.jpg in .*a\.zip'):
        sources.one(r'val/b\.jpg').read()


@pytest.mark.parametrize(
    ('content', 'sentence'),
    [
        (b'<!DOCTYPE html><html>', 'gtFine.zip is an HTML page'),
        (b'\x89PNG....', 'Cannot read .*gtFine.zip'),
        (b'', 'Cannot read .*gtFine.zip'),
    ],
)
def test_what_is_no_archive_is_named(tmp_path, content, sentence):
    (tmp_path / 'gtFine.zip').write_bytes(content)
    with pytest.raises(TPAError, match=sentence) as caught:
        Sources([tmp_path / 'gtFine.zip'])
    assert '\n' not in str(caught.value)


def test_a_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TPAError, match='Source not found: .*nowhere.zip'):
        Sources([tmp_path / 'nowhere.zip'])


def test_a_link_to_the_folder_above_ends_nothing_in_a_circle(tmp_path):
    folder = write_folder(tmp_path / 'source', FILES)
    (folder / 'top' / 'up').symlink_to(folder)
    with Sources([folder]) as sources:
        assert len(sources.files(r'val/(\w)\.jpg')) == 2


def test_what_a_mac_adds_to_an_archive_is_left_out(tmp_path):
    archive = write_zip(tmp_path / 'a.zip', {'val/1.png': b'1', '__MACOSX/val/1.png': b'', 'val/._1.png': b''})
    with Sources([archive]) as sources:
        assert sources.files(r'val/([\w.]+)\.png')['1'].read() == b'1'
        assert len(sources.files(r'([\w.]+)\.png')) == 1
