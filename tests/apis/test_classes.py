"""Classes as users write them: synonyms, a background, one, two, two hundred, in any script."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.tiny_segmenter import painted, tiny_config, tiny_segmenter
from tpa_mmseg.apis import Segmenter, segment
from tpa_mmseg.clip.names import ClassNames
from tpa_mmseg.errors import TPAError


@pytest.mark.parametrize(
    'classes',
    (
        ['cat', 'tv; television; monitor', 'wall'],
        ['cat, tv; television; monitor', 'wall'],
        [['cat'], ['tv', 'television', 'monitor'], ['wall']],
        'cat, tv; television; monitor, wall',
        'cat\ntv; television; monitor\nwall\n',
    ),
)
def test_synonyms_are_queries_of_one_class(classes: object) -> None:
    names = ClassNames.read(classes)
    assert names.names == (('cat',), ('tv', 'television', 'monitor'), ('wall',))
    segmenter = tiny_segmenter(classes)
    assert segmenter.classes == ('cat', 'tv', 'wall')
    assert segmenter.probabilities(painted()).shape[0] == 3


def test_classes_come_from_a_file_or_a_list_of_the_package(tmp_path: Path) -> None:
    (tmp_path / 'mine.txt').write_text('cat\ntv; television\n', encoding='utf-8')
    assert tiny_segmenter(str(tmp_path / 'mine.txt')).classes == ('cat', 'tv')
    assert len(tiny_segmenter('voc20').classes) == 20


def test_synonyms_change_the_scores() -> None:
    plain = tiny_segmenter('cat, tv').host_probabilities(painted())
    with_synonym = tiny_segmenter('cat, tv; dragon').host_probabilities(painted())
    assert not np.allclose(plain, with_synonym)


def test_one_class_without_a_background_is_refused() -> None:
    with pytest.raises(TPAError, match=r"One class \('cat'\) is not enough"):
        tiny_segmenter(['cat'])


def test_two_classes_share_the_image() -> None:
    segmenter = tiny_segmenter(['cat', 'dog'])
    result = segmenter.segment([painted(0), painted(1)])[0]
    assert sum(area.pixels for area in result.areas) == result.labels.size
    assert np.allclose(segmenter.probabilities(painted(0)).sum(0), 1, atol=1e-5)


def test_two_hundred_classes_fit_into_a_palette_image(tmp_path: Path) -> None:
    segmenter = tiny_segmenter([f'thing {number}' for number in range(200)])
    result = segmenter.segment([painted(0)])[0]
    assert result.labels.dtype == np.uint8
    assert len({tuple(color) for color in result.palette}) == 200
    assert np.array_equal(np.asarray(result.label_image()), result.labels)
    result.save(tmp_path)
    assert (tmp_path / 'comparisons/image_1.png').is_file()


def test_more_classes_than_a_palette_has_colors_are_16_bit_grey() -> None:
    result = tiny_segmenter([f'thing {number}' for number in range(300)]).segment(painted(0))
    image = result.label_image()
    assert image.mode == 'I;16' and np.array_equal(np.asarray(image), result.labels)


def test_names_in_any_script_reach_the_figures_and_the_file(tmp_path: Path) -> None:
    names = ['кошка', 'σκύλος', 'arbre élevé', '猫', 'שולחן']
    results = tiny_segmenter(names).segment([painted(0)])
    results.save(tmp_path)
    text = (tmp_path / 'areas.json').read_text(encoding='utf-8')
    assert all(name in text for name in names)


@pytest.mark.parametrize('classes', ([], '', ' ; ', ['cat', ''], ['cat', ' ; ']))
def test_no_name_is_an_error(classes: object) -> None:
    with pytest.raises(TPAError, match='has no name|No classes'):
        tiny_segmenter(classes)


@pytest.mark.parametrize('classes', (['cat', 'dog'], 'cat, dog'))
def test_background_is_class_0_and_takes_uncertain_pixels(classes: object) -> None:
    segmenter = tiny_segmenter(classes, background='wall; sky', threshold=1.1)
    result = segmenter.segment(painted())
    assert result.classes == ('background', 'cat', 'dog')
    assert (result.labels == 0).all()


def test_first_class_may_be_the_background() -> None:
    segmenter = tiny_segmenter(['background', 'cat', 'dog'], threshold=1.1)
    assert segmenter.classes == ('background', 'cat', 'dog')
    assert (segmenter.segment(painted()).labels == 0).all()


def test_words_of_the_background_that_are_classes_are_left_to_them() -> None:
    segmenter = tiny_segmenter(['wall', 'cat'], background='sky; wall')
    assert segmenter.classes == ('background', 'wall', 'cat')
    with pytest.raises(TPAError, match='other words'):
        tiny_segmenter(['wall', 'cat'], background='Wall')


def test_threshold_needs_a_background() -> None:
    with pytest.raises(TPAError, match='background'):
        tiny_segmenter(['cat', 'dog'], threshold=0.3)


def test_function_and_object_agree() -> None:
    images = [painted(0), painted(1)]
    alone = segment(images, ['cat', 'dog', 'tree'], host=tiny_config(), progress=False)
    kept = Segmenter(['cat', 'dog', 'tree'], tiny_config(), progress=False).segment(images)
    assert [result.labels.shape for result in alone] == [result.labels.shape for result in kept]
    assert alone[0].classes == kept[0].classes
