"""Visitors, without a page: what is theirs, what they share, and how many there may be."""

from __future__ import annotations

import gc
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tpa_mmseg import Segmenter
from tpa_mmseg.apis.images import list_images
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.errors import TPAError
from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.webapp.limits import Limits
from tpa_mmseg.webapp.session import Form, Visit, Visits
from tpa_mmseg.webapp.view import class_table, pictures, summary

MINIATURE = 'mini-b8'
FORM = Form(', '.join(CLASSES), backbone=MINIATURE)
SCENES = [f'miniature://images/val/{number:05d}.png' for number in range(2)]
DEFAULTS = 0.5, 5.0, 2.0


def run(visit: Visit, form: Form = FORM, shown: int | None = None) -> Segmenter:
    return visit.segment(form, list_images(SCENES).images, shown, lambda share: None)


@pytest.fixture(scope='module')
def visits() -> Visits:
    return Visits(Limits())


@pytest.fixture(scope='module')
def visit(visits: Visits) -> Visit:
    """Two painted scenes that were segmented."""
    found = visits.find('first')
    run(found)
    return found


@pytest.fixture
def runs(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> list:
    """One entry for every pass of the host or the encoder."""
    loaded, seen = visit.view(*DEFAULTS)[1]._loaded, []
    for network, method in ((loaded.host, 'score_maps'), (loaded.encoder, 'dense')):
        original = getattr(type(network), method)
        spy = lambda *args, original=original, **kwargs: seen.append(args) or original(*args, **kwargs)  # noqa: E731
        monkeypatch.setattr(type(network), method, spy)
    return seen


def test_sliders_change_the_labels_and_no_network_runs(visit: Visit, runs: list) -> None:
    first, _ = visit.view(*DEFAULTS)
    other, segmenter = visit.view(0.0, 10.0, 2.0)
    assert other.changed_fraction > first.changed_fraction
    assert np.array_equal(other.host_labels, first.host_labels)
    few, many = (visit.view(0.5, 5.0, k)[0] for k in (6.0, 1.0))
    assert sum(known.anchors for known in few.coverage) < sum(known.anchors for known in many.coverage)
    pictures(many, segmenter.anchors(many.image, 1.0))
    assert not runs


def test_alpha_one_is_the_host_alone(visit: Visit) -> None:
    result, segmenter = visit.view(1.0, 5.0, 2.0)
    assert result.changed_fraction == 0 and 'TPA changed 0.0 %' in summary(result, segmenter.bank)
    changed, _ = pictures(result, segmenter.anchors(result.image, 2.0))
    pixels = np.asarray(changed, int)
    assert np.ptp(pixels, axis=2).max() == 0  # gray everywhere


def test_another_image_is_a_click_away(visit: Visit) -> None:
    visit.index = 1
    other, _ = visit.view(*DEFAULTS)
    visit.index = 0
    assert other.name == '00001.png' and visit.view(*DEFAULTS)[0].name == '00000.png'


def test_names_are_text_in_the_table(visit: Visit) -> None:
    result, segmenter = visit.view(*DEFAULTS)
    evil = '<img src=x onerror=alert(1)>'
    named = type(result)(**{**vars(result), 'classes': (evil, *CLASSES[1:])})
    table = class_table(named, segmenter.anchors(result.image, 2.0))
    assert '<img' not in table and '&lt;img src=x' in table


def test_networks_are_shared_and_banks_are_not(visits: Visits, visit: Visit) -> None:
    others = [visits.find(name) for name in ('second', 'third')]
    before = visit.view(*DEFAULTS)[0].coverage
    same, different = run(others[0]), run(others[1], Form('grass, water; sea', backbone=MINIATURE))
    mine = visit.view(*DEFAULTS)[1]
    storages = [
        {parameter.data_ptr() for parameter in segmenter._loaded.model.parameters()}
        for segmenter in (mine, same, different)
    ]
    assert storages[0] == storages[1] == storages[2]
    assert len({id(segmenter.bank) for segmenter in (mine, same, different)}) == 3
    assert visit.view(*DEFAULTS)[0].coverage == before
    assert different.classes == ('grass', 'water')


def test_a_shared_network_gives_the_labels_of_one_s_own(visits: Visits) -> None:
    names = ['grass', 'water; sea', 'flower']
    theirs = run(visits.find('fourth'), Form(', '.join(names), backbone=MINIATURE)).segment_one(SCENES[0])
    model = Segmenter(names, 'sclip', MINIATURE, progress=False)
    model.adapt(SCENES)
    assert np.array_equal(model.segment_one(SCENES[0]).labels, theirs.labels)


def test_there_is_a_limit_on_visitors_and_who_leaves_makes_room() -> None:
    visits = Visits(Limits(visitors=2))
    assert visits.find('a') is visits.find('a')
    visits.find('b')
    with pytest.raises(TPAError, match='The page has 2 visitors already'):
        visits.find('c')
    visits.leave('a')
    visits.find('c')


def test_who_does_nothing_for_long_is_forgotten() -> None:
    visits = Visits(Limits(visitors=1, minutes=0))
    folder = Path(visits.find('a').folder.name)
    assert folder.stat().st_mode & 0o077 == 0
    visits.find('b')
    gc.collect()
    assert not folder.exists()


def test_only_a_part_of_the_pool_is_shown(visits: Visits) -> None:
    visit = visits.find('fifth')
    run(visit, shown=1)
    assert [image.name for image in visit.shown] == ['00000.png']
    assert visit.view(*DEFAULTS)[0].settings.bank_images == 2


def test_all_images_and_the_bank_are_saved(visit: Visit, tmp_path: Path) -> None:
    archive, bank = visit.save(0.5, 5.0, 3.0)
    with zipfile.ZipFile(archive) as content:
        assert {Path(name).parts[0] for name in content.namelist()} >= {'labels', 'overlays', 'comparisons'}
        with content.open('labels/00000.png') as file:
            labels = np.asarray(Image.open(file))
        areas = json.loads(content.read('areas.json'))
    assert np.array_equal(labels, visit.view(0.5, 5.0, 3.0)[0].labels)
    assert areas['classes'] == list(CLASSES)
    assert PrototypeBank.load(bank).rule.k == 3.0
    model = Segmenter(list(CLASSES), 'sclip', MINIATURE, bank=bank, progress=False)
    assert np.array_equal(model.segment(SCENES[0]).labels, labels)


def test_one_class_needs_a_background(visits: Visits) -> None:
    with pytest.raises(TPAError, match=r"One class \('star'\) is not enough"):
        run(visits.find('seventh'), Form('star', backbone=MINIATURE))
    assert run(visits.find('seventh'), Form('star', True, backbone=MINIATURE)).classes == ('background', 'star')


def test_words_that_name_a_file_are_words(tmp_path: Path) -> None:
    secret = tmp_path / 'secret.txt'
    secret.write_text('grass\nwater\n', encoding='utf-8')
    with pytest.raises(TPAError, match='Unknown word') as refused:
        run(Visits(Limits()).find('a'), Form(str(secret), True, backbone=MINIATURE))
    assert 'secret.txt' in str(refused.value)


@pytest.mark.parametrize(('host', 'backbone'), [('config', MINIATURE), ('sclip', '../secret'), ('nobody', MINIATURE)])
def test_only_named_hosts_are_run(host: str, backbone: str, tmp_path: Path) -> None:
    program = tmp_path / 'config.py'
    program.write_text(f'open({str(tmp_path / "ran")!r}, "w")\n', encoding='utf-8')
    with pytest.raises(TPAError, match='Unknown host'):
        run(Visits(Limits()).find('a'), Form('cat, dog', False, str(program) if host == 'config' else host, backbone))
    assert not (tmp_path / 'ran').exists()


def test_other_words_after_refused_ones_work(visits: Visits) -> None:
    visit = visits.find('sixth')
    with pytest.raises(TPAError, match='unicorn'):
        run(visit, Form('unicorn\ngrass', backbone=MINIATURE))
    run(visit)
    assert len(visit.view(*DEFAULTS)[0].classes) == len(CLASSES)


def test_nothing_to_segment_and_nothing_to_show_are_said() -> None:
    visit = Visits(Limits()).find('a')
    with pytest.raises(TPAError, match='No images'):
        visit.segment(FORM, [], None, print)
    for action in (visit.view, visit.save):
        with pytest.raises(TPAError, match='No results'):
            action(*DEFAULTS)
