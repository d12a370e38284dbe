"""The session of a visitor, without a page."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.webapp.test_limits import encoded
from tpa_mmseg import Segmenter
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.errors import TPAError
from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.webapp.examples import Example, read_examples
from tpa_mmseg.webapp.limits import Limits
from tpa_mmseg.webapp.session import BACKBONES, FormValues, PageSession, SliderValues

MINIATURE = 'mini-b8'
SCENES = Example(
    'two scenes', ('miniature://images/val/00000.png', 'miniature://images/val/00001.png'), CLASSES, MINIATURE
)
FORM = FormValues('\n'.join(CLASSES), backbone=MINIATURE)


@pytest.fixture(scope='module')
def session() -> PageSession:
    """Two painted scenes that were segmented."""
    found = PageSession(Limits())
    found.segment(found.take(SCENES))
    return found


def image(url: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(',')[2]))))


def test_description_names_the_weights_of_the_miniature(session: PageSession) -> None:
    assert session.description.startswith('Miniature weights') and MINIATURE in session.description


@pytest.fixture
def runs(session: PageSession, monkeypatch: pytest.MonkeyPatch) -> list:
    """One entry for every pass of the host."""
    host, seen = type(session._segmenter._loaded.host), []
    original = host.score_maps
    monkeypatch.setattr(host, 'score_maps', lambda *args: seen.append(args) or original(*args))
    return seen


def test_sliders_change_the_labels_and_the_models_do_not_run_again(session: PageSession, runs: list) -> None:
    first = session.view(0, SliderValues())
    other = session.view(0, SliderValues(alpha=0.0, lambda_=10.0))
    assert other.panels['tpa'] != first.panels['tpa'] and other.changed > first.changed
    assert other.panels['host'] == first.panels['host']
    assert session.view(1, SliderValues()).panels['input'] != first.panels['input']
    assert not runs


def test_k_changes_anchors_and_the_bank_and_the_models_do_not_run_again(session: PageSession, runs: list) -> None:
    few, many = (session.view(0, SliderValues(k=k)) for k in (6.0, 1.0))
    assert few.panels['anchors'] != many.panels['anchors']
    for column in ('here', 'bank'):
        assert sum(row[column] for row in few.rows) < sum(row[column] for row in many.rows)
    assert not runs


def test_alpha_one_is_the_host_alone(session: PageSession) -> None:
    view = session.view(0, SliderValues(alpha=1.0))
    assert view.changed == 0 and view.panels['tpa'] == view.panels['host']
    assert len(np.unique(image(view.panels['difference']).reshape(-1, 3), axis=0)) == 1


def test_rows_agree_with_the_result(session: PageSession) -> None:
    view = session.view(0, SliderValues())
    result = session._segmenter.segment_one(session.segmented[0], 0.5, 5.0, 2.0)
    anchors = session._segmenter.anchors(session.segmented[0], 2.0)
    assert [row['name'] for row in view.rows] == list(CLASSES)
    assert [row['bank'] for row in view.rows] == [known.anchors for known in result.coverage]
    assert sum(row['here'] for row in view.rows) == np.count_nonzero(anchors >= 0)
    assert sum(row['tpa'] for row in view.rows) == pytest.approx(100, abs=1)
    shown = {tuple(color) for color in image(view.panels['tpa']).reshape(-1, 3)}
    used = {row['color'] for row, area in zip(view.rows, result.areas, strict=True) if area.pixels}
    assert {'#{:02x}{:02x}{:02x}'.format(*color) for color in shown} == used


def test_same_images_and_classes_again_need_no_models(session: PageSession, runs: list) -> None:
    session.segment(FORM)
    assert not runs and session.view(0, SliderValues()).rows


def test_other_images_take_the_place_of_those_before(session: PageSession) -> None:
    other = PageSession(Limits())
    other.segment(other.take(SCENES))
    assert len(other._segmenter._cache) == 2
    other.images = other.images[:1]
    other.segment(FORM)
    assert len(other._segmenter._cache) == 1 and len(other.segmented) == 1


def test_archive_holds_masks_under_names_of_our_own() -> None:
    session = PageSession(Limits())
    names = ('../../evil.png', '/etc/passwd', 'C:\\evil.png')
    scene = SCENES.sources()[0].resized((64, 80))
    for shift, name in enumerate(names):
        session.add(encoded(np.roll(np.asarray(scene), 8 * shift, 1)), name)
    session.segment(FormValues('grass; lawn\nwater', backbone=MINIATURE))
    with zipfile.ZipFile(io.BytesIO(session.archive(SliderValues()))) as archive:
        kinds = ('comparisons', 'labels', 'overlays')
        expected = ['areas.json', *(f'{kind}/image_{number}.png' for kind in kinds for number in (1, 2, 3))]
        assert sorted(archive.namelist()) == expected
        labels = np.asarray(Image.open(archive.open('labels/image_1.png')))
        areas = json.loads(archive.read('areas.json'))
    assert np.array_equal(labels, session._segmenter.segment_one(session.segmented[0], 0.5, 5.0, 2.0).labels)
    assert areas['classes'] == ['grass', 'water'] and areas['images'][0]['image'] == 'evil.png'


def test_bank_has_the_k_of_the_slider_and_serves_elsewhere(session: PageSession, tmp_path: Path) -> None:
    path = tmp_path / 'bank.safetensors'
    path.write_bytes(session.bank(SliderValues(k=3.0)))
    bank = PrototypeBank.load(path)
    assert bank.rule.k == 3.0 and bank.images == 2
    model = Segmenter(list(CLASSES), 'sclip', MINIATURE, bank=path, progress=False)
    there = model.segment(SCENES.images[1]).labels
    assert np.array_equal(there, session._segmenter.segment_one(session.segmented[1], 0.5, 5.0, 3.0).labels)


def test_progress_is_reported_image_by_image(session: PageSession) -> None:
    shares = []
    session.segment(FORM, shares.append)
    assert shares == [0.5, 1.0]


def test_no_more_images_than_allowed() -> None:
    session = PageSession(Limits(images=2))
    for _ in range(2):
        session.add(encoded(np.zeros((8, 8, 3), np.uint8)), 'a.png')
    with pytest.raises(TPAError, match='At most 2'):
        session.add(encoded(np.zeros((8, 8, 3), np.uint8)), 'a.png')
    session.clear()
    session.add(encoded(np.zeros((8, 8, 3), np.uint8)), 'a.png')


def test_words_that_name_a_file_are_words(tmp_path: Path) -> None:
    secret = tmp_path / 'secret.txt'
    secret.write_text('grass\nwater\n', encoding='utf-8')
    session = PageSession(Limits())
    session.take(SCENES)
    with pytest.raises(TPAError, match='Unknown word') as refused:
        session.segment(FormValues(str(secret), True, backbone=MINIATURE))
    assert 'secret.txt' in str(refused.value)


@pytest.mark.parametrize(('host', 'backbone'), [('config', MINIATURE), ('sclip', '../secret'), ('nobody', MINIATURE)])
def test_only_named_hosts_are_run(host: str, backbone: str, tmp_path: Path) -> None:
    program = tmp_path / 'config.py'
    program.write_text(f'open({str(tmp_path / "ran")!r}, "w")\n', encoding='utf-8')
    session = PageSession(Limits())
    session.take(SCENES)
    with pytest.raises(TPAError, match='Unknown host'):
        session.segment(FormValues(FORM.classes, False, str(program) if host == 'config' else host, backbone))
    assert not (tmp_path / 'ran').exists()


def test_other_words_after_refused_ones_work(session: PageSession) -> None:
    with pytest.raises(TPAError, match='unicorn'):
        session.segment(FormValues('unicorn\ngrass', backbone=MINIATURE))
    session.segment(FORM)
    assert len(session.view(0, SliderValues()).rows) == len(CLASSES)


def test_nothing_to_segment_and_nothing_to_show_are_said() -> None:
    session = PageSession(Limits())
    with pytest.raises(TPAError, match='No images'):
        session.segment(FORM)
    for action in (session.archive, session.bank, lambda settings: session.view(0, settings)):
        with pytest.raises(TPAError, match='No results'):
            action(SliderValues())


@pytest.mark.parametrize('example', read_examples(), ids=lambda example: example.name)
def test_example_fits_the_limits_and_its_model_has_its_words(example: Example) -> None:
    session = PageSession(Limits())
    form = session.take(example)
    assert 1 < len(session.images) <= Limits().images and form.backbone in BACKBONES
    session.images = session.images[:1]
    session.segment(form)
    assert session.view(0, SliderValues()).changed > 0
