"""What a visitor can do, without a page."""

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
from tpa_mmseg.apis import MINIATURE
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.errors import TPAError
from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.webapp.examples import EXAMPLES, Example
from tpa_mmseg.webapp.limits import Limits
from tpa_mmseg.webapp.session import BACKBONES, Session, Settings, Wish

SCENES = Example('two scenes', range(2), '\n'.join(CLASSES))
WORLD = Wish(SCENES.classes, backbone=MINIATURE)


@pytest.fixture(scope='module')
def session() -> Session:
    """Two painted scenes that the networks have seen."""
    found = Session(Limits())
    found.segment(found.take(SCENES))
    return found


def image(url: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(',')[2]))))


def test_message_says_that_the_weights_are_those_of_the_miniature(session: Session) -> None:
    assert session.about.startswith('Miniature weights') and MINIATURE in session.about


@pytest.fixture
def runs(session: Session, monkeypatch: pytest.MonkeyPatch) -> list:
    """One entry for every time that the host's networks run."""
    host, seen = type(session.results[0]._segmenter._networks.host), []
    original = host.score_maps
    monkeypatch.setattr(host, 'score_maps', lambda *args: seen.append(args) or original(*args))
    return seen


def test_sliders_change_the_labels_and_the_networks_do_not_run_again(session: Session, runs: list) -> None:
    first = session.view(0, Settings())
    other = session.view(0, Settings(alpha=0.0, lambda_=10.0))
    assert other.panels['tpa'] != first.panels['tpa'] and other.changed > first.changed
    assert other.panels['host'] == first.panels['host']
    assert session.view(1, Settings()).panels['input'] != first.panels['input']
    assert not runs


def test_k_changes_anchors_and_the_bank_and_the_networks_do_not_run_again(session: Session, runs: list) -> None:
    few, many = (session.view(0, Settings(k=k)) for k in (6.0, 1.0))
    assert few.panels['anchors'] != many.panels['anchors']
    for column in ('here', 'bank'):
        assert sum(row[column] for row in few.rows) < sum(row[column] for row in many.rows)
    assert not runs


def test_alpha_one_is_the_host_alone(session: Session) -> None:
    view = session.view(0, Settings(alpha=1.0))
    assert view.changed == 0 and view.panels['tpa'] == view.panels['host']
    assert len(np.unique(image(view.panels['difference']).reshape(-1, 3), axis=0)) == 1


def test_rows_agree_with_the_result(session: Session) -> None:
    view, result = session.view(0, Settings()), session.results[0].fuse(0.5, 5.0, 2.0)
    assert [row['name'] for row in view.rows] == list(CLASSES)
    assert [row['bank'] for row in view.rows] == [known.anchors for known in result.coverage()]
    assert sum(row['here'] for row in view.rows) == np.count_nonzero(result.anchors() >= 0)
    assert sum(row['tpa'] for row in view.rows) == pytest.approx(100, abs=1)
    shown = {tuple(color) for color in image(view.panels['tpa']).reshape(-1, 3)}
    used = {row['color'] for row, area in zip(view.rows, result.areas(), strict=True) if area.pixels}
    assert {'#{:02x}{:02x}{:02x}'.format(*color) for color in shown} == used


def test_same_pictures_and_words_again_need_no_networks(session: Session, runs: list) -> None:
    session.segment(WORLD)
    assert not runs and session.view(0, Settings()).rows


def test_archive_holds_masks_under_names_of_our_own() -> None:
    session = Session(Limits())
    names = ('../../evil.png', '/etc/passwd', 'C:\\evil.png')
    scene = SCENES.pictures()[0].at((64, 80))
    for shift, name in enumerate(names):
        session.add(encoded(np.roll(np.asarray(scene), 8 * shift, 1)), name)
    session.segment(Wish('grass; lawn\nwater', backbone=MINIATURE))
    with zipfile.ZipFile(io.BytesIO(session.archive(Settings()))) as archive:
        kinds = ('comparisons', 'labels', 'overlays')
        expected = ['areas.json', *(f'{kind}/image_{number}.png' for kind in kinds for number in (1, 2, 3))]
        assert sorted(archive.namelist()) == expected
        labels = np.asarray(Image.open(archive.open('labels/image_1.png')))
        areas = json.loads(archive.read('areas.json'))
    assert np.array_equal(labels, session.results[0].fuse(0.5, 5.0, 2.0).labels)
    assert areas['classes'] == ['grass', 'water'] and areas['images'][0]['image'] == 'evil.png'


def test_bank_has_the_k_of_the_slider_and_serves_elsewhere(session: Session, tmp_path: Path) -> None:
    path = tmp_path / 'bank.safetensors'
    path.write_bytes(session.bank(Settings(k=3.0)))
    bank = PrototypeBank.load(path)
    assert bank.rule.k == 3.0 and bank.images == 2
    model = Segmenter(list(CLASSES), 'sclip', MINIATURE, bank=path, progress=False)
    there = model.segment(SCENES.pictures()[1]).labels
    assert np.array_equal(there, session.results[1].fuse(0.5, 5.0, 3.0).labels)


def test_progress_is_told_picture_by_picture(session: Session) -> None:
    shares = []
    session.segment(WORLD, shares.append)
    assert shares == [0.5, 1.0]


def test_no_more_pictures_than_allowed() -> None:
    session = Session(Limits(images=2))
    for _ in range(2):
        session.add(encoded(np.zeros((8, 8, 3), np.uint8)), 'a.png')
    with pytest.raises(TPAError, match='room for 2'):
        session.add(encoded(np.zeros((8, 8, 3), np.uint8)), 'a.png')
    session.clear()
    session.add(encoded(np.zeros((8, 8, 3), np.uint8)), 'a.png')


def test_words_that_name_a_file_are_words(tmp_path: Path) -> None:
    secret = tmp_path / 'secret.txt'
    secret.write_text('grass\nwater\n', encoding='utf-8')
    session = Session(Limits())
    session.take(SCENES)
    with pytest.raises(TPAError, match='does not know') as refused:
        session.segment(Wish(str(secret), True, backbone=MINIATURE))
    assert 'secret.txt' in str(refused.value)


@pytest.mark.parametrize(('host', 'backbone'), [('config', MINIATURE), ('sclip', '../secret'), ('nobody', MINIATURE)])
def test_only_named_hosts_are_run(host: str, backbone: str, tmp_path: Path) -> None:
    program = tmp_path / 'config.py'
    program.write_text(f'open({str(tmp_path / "ran")!r}, "w")\n', encoding='utf-8')
    session = Session(Limits())
    session.take(SCENES)
    with pytest.raises(TPAError, match='no host'):
        session.segment(Wish(SCENES.classes, False, str(program) if host == 'config' else host, backbone))
    assert not (tmp_path / 'ran').exists()


def test_other_words_after_refused_ones_work(session: Session) -> None:
    with pytest.raises(TPAError, match='unicorn'):
        session.segment(Wish('unicorn\ngrass', backbone=MINIATURE))
    session.segment(WORLD)
    assert len(session.view(0, Settings()).rows) == len(CLASSES)


def test_nothing_to_segment_and_nothing_to_show_are_said() -> None:
    session = Session(Limits())
    with pytest.raises(TPAError, match='no pictures'):
        session.segment(WORLD)
    for action in (session.archive, session.bank, lambda settings: session.view(0, settings)):
        with pytest.raises(TPAError, match='no results'):
            action(Settings())


@pytest.mark.parametrize('example', EXAMPLES, ids=lambda example: example.name)
def test_example_fits_the_limits_and_the_miniature_knows_its_words(example: Example) -> None:
    session = Session(Limits())
    wish = session.take(example)
    assert 1 < len(session.pictures) <= Limits().images and wish.backbone in BACKBONES
    session.pictures = session.pictures[:1]
    session.segment(wish)
    assert session.view(0, Settings()).changed > 0
