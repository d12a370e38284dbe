"""Class names: one grammar for strings, lists, files and packaged lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.golden import golden_file, load
from tpa_mmseg.clip.names import PACKAGED, ClassNames, packaged_lists
from tpa_mmseg.errors import TPAError

NAMES = (('cat',), ('sofa',), ('tv', 'television'))


@pytest.mark.parametrize(
    'source',
    [
        'cat, sofa, tv; television',
        'cat,sofa,tv;television,',
        'cat\nsofa\n\ntv; television\n',
        'cat\r\nsofa\r\ntv ; television ;',
        ['cat', 'sofa', 'tv; television'],
        ['cat,', 'sofa', 'tv; television'],  # a shell's arguments, with a comma by habit
        ['cat, sofa', 'tv; television'],
        [['cat'], 'sofa', ('tv', 'television')],
    ],
)
def test_the_grammar_is_the_same_everywhere(source: object) -> None:
    names = ClassNames.read(source)
    assert names.names == NAMES
    assert names.queries == ['cat', 'sofa', 'tv', 'television']
    assert names.query_to_class == [0, 1, 2, 2]
    assert names.titles == ['cat', 'sofa', 'tv']


def test_names_in_inner_lists_are_taken_as_they_are() -> None:
    assert ClassNames.read([['screen, or monitor', 'a; b'], 'wall']).names == (
        ('screen, or monitor', 'a; b'),
        ('wall',),
    )


def test_a_file_has_one_class_per_line(tmp_path: Path) -> None:
    path = tmp_path / 'names.txt'
    path.write_text('sky; wall;tree ; sea\nperson\ntv monitor; screen\n\n', encoding='utf-8')
    expected = (('sky', 'wall', 'tree', 'sea'), ('person',), ('tv monitor', 'screen'))
    assert ClassNames.read(path).names == ClassNames.read(str(path)).names == expected


def test_a_comma_in_a_file_is_refused_because_the_originals_mean_synonyms_by_it(tmp_path: Path) -> None:
    queries = load(golden_file('clip_hosts', 'queries.npz'))
    original = golden_file('clip_hosts', 'names_syn.txt')
    with pytest.raises(TPAError, match=r"names_syn\.txt, line 1: 'alpha, beta, gamma'\. A line is one class"):
        ClassNames.read(original)
    (tmp_path / 'names.txt').write_text(original.read_text(encoding='utf-8').replace(', ', '; '), encoding='utf-8')
    assert ClassNames.read(tmp_path / 'names.txt').query_to_class == queries['query_idx'].tolist()
    flat = ClassNames.read(golden_file('clip_hosts', 'names_flat.txt'))
    assert flat.query_to_class == queries['query_idx_identity'].tolist()


def test_packaged_lists_follow_the_grammar() -> None:
    assert not [name for name in packaged_lists() if ',' in (PACKAGED / f'{name}.txt').read_text(encoding='utf-8')]


def test_class_without_a_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'names.txt').write_text('cat\n\ndog\n')
    with pytest.raises(TPAError, match='Class 1 in .*names.txt has no name'):
        ClassNames.read(tmp_path / 'names.txt')
    with pytest.raises(TPAError, match=r'Cannot read class names from .*missing\.txt'):
        ClassNames.read(str(tmp_path / 'missing.txt'))
    with pytest.raises(TPAError, match='Class 1 in class_names has no name'):
        ClassNames.read(['cat', ' ; '])
    for nothing in ('', ' , ', []):
        with pytest.raises(TPAError, match='No classes in class_names: name some, e.g. ..cat'):
            ClassNames.read(nothing)


def test_a_misspelled_list_is_not_taken_for_a_class() -> None:
    with pytest.raises(TPAError, match=r"Unknown class list 'voc2021'\. Did you mean .*voc21.* Choose from: ade20k"):
        ClassNames.read('voc2021')
    assert ClassNames.read('zebra').names == ClassNames.read(['zebra']).names == (('zebra',),)
    assert ClassNames.read(['voc21']).names == (('voc21',),)


def test_name_of_two_classes_is_warned_about_once() -> None:
    with pytest.warns(UserWarning, match="'bed' is a name of classes 0 and 2") as caught:
        ClassNames.read([['sky', 'bed'], 'cat', 'bed'])
    assert len(caught) == 1


@pytest.mark.parametrize('words', ['wall, sky', 'wall; sky', ['wall', 'sky ']])
def test_a_background_is_class_0_and_leaves_names_of_classes_alone(words: object) -> None:
    names = ClassNames.read('cat, Sky').with_background(words)
    assert names.names == (('wall',), ('cat',), ('Sky',))
    with pytest.raises(TPAError, match=r'All names of the background are classes \(cat\)'):
        names.with_background('cat')


def test_a_first_class_called_background_is_one() -> None:
    names, found = ClassNames.read('background, cat').split_background()
    assert found and names.names == (('cat',),)
    assert ClassNames.read('cat, background').split_background() == (ClassNames((('cat',), ('background',))), False)
    assert not ClassNames.read('background').split_background()[1]


def test_it_says_what_was_understood() -> None:
    assert str(ClassNames.read('cat, sofa, tv; television; monitor')) == (
        '3 classes: cat / sofa / tv (= television, monitor)'
    )
    assert str(ClassNames.read('grass; water; sand')) == '1 class: grass (= water, sand)'
    assert str(ClassNames.read('ade20k')).endswith(' / ... (130 more)')
