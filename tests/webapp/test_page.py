"""The page in a real browser."""

from __future__ import annotations

import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.helpers.browser import browser  # noqa: F401
from tests.helpers.tiny_segmenter import painted
from tpa_mmseg.apis.images import list_images
from tpa_mmseg.webapp.limits import Limits

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec('gradio') is None, reason="no Gradio: pip install 'tpa_mmseg[webapp]'"),
]
# Milliseconds: the machine may be busy, and networks are loaded.
_PATIENCE = 180_000
_EVIL = '<img src=x onerror="window.evil=1">'


@pytest.fixture(scope='module')
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page, served in this process. Its examples have small pools."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('GRADIO_ANALYTICS_ENABLED', 'False')
        patch.setenv('GRADIO_TEMP_DIR', str(tmp_path_factory.mktemp('uploads')))
        import uvicorn

        from tpa_mmseg.webapp import page
        from tpa_mmseg.webapp.guard import Guard

        small = [{**example, 'pool': 3, 'shown': 2} for example in page.EXAMPLES]
        patch.setattr(page, 'EXAMPLES', small)
        app = page.mount_page(Guard(Limits(images=3)))
        one = uvicorn.Server(uvicorn.Config(app, port=0, log_level='warning'))
        thread = threading.Thread(target=one.run, daemon=True)
        thread.start()
        while not one.started and thread.is_alive():
            time.sleep(0.05)
        yield f'http://127.0.0.1:{one.servers[0].sockets[0].getsockname()[1]}/'
        one.should_exit = True
        thread.join(30)


@pytest.fixture
def visitor(browser, server: str, request: pytest.FixtureRequest):  # noqa: F811
    """A page of a new visitor. Whatever it asked for was on this machine, and its scripts made no error."""
    context = browser.new_context(**getattr(request, 'param', {}), accept_downloads=True)
    context.set_default_timeout(_PATIENCE)
    page, asked, errors = context.new_page(), [], []
    page.on('request', lambda found: asked.append(found.url))
    page.on('pageerror', lambda error: errors.append(str(error)))
    page.goto(server)
    yield page
    assert [url for url in asked if not url.startswith((server, 'data:', 'blob:'))] == []
    assert errors == []
    context.close()


def choose(page, example: str) -> None:
    page.get_by_role('button', name=example, exact=True).click()
    page.wait_for_selector('#table table')


def pixels(page, place: str, number: int = 0) -> np.ndarray:
    """The picture in a part of the page."""
    url = page.locator(f'#{place} img').nth(number).get_attribute('src')
    found = page.request.get(url)
    assert found.ok
    return np.asarray(Image.open(io.BytesIO(found.body())).convert('RGB'), int)


def saved(page, folder: Path) -> Path:
    """What the page offers for download: a zip with everything but the bank."""
    page.get_by_role('button', name='Download labels').click()
    page.wait_for_selector('#files a')
    with page.expect_download() as found:
        page.locator('#files a').first.click()
    found.value.save_as(folder / 'all.zip')
    return folder / 'all.zip'


def wait_for_change(page, before: str) -> str:
    page.wait_for_function('before => document.querySelector("#summary p").innerText != before', arg=before)
    return page.locator('#summary p').inner_text()


def test_from_a_click_on_an_example_to_changed_labels_and_files(visitor, tmp_path: Path) -> None:
    choose(visitor, 'Painted scenes')
    assert visitor.locator('#model').inner_text().startswith('Miniature models')
    assert '14 classes: grass / water' in visitor.locator('#model').inner_text()
    before = visitor.locator('#summary p').inner_text()
    assert 'Bank of 3 images' in before
    host, tpa = pixels(visitor, 'pair', 0), pixels(visitor, 'pair', 1)
    assert host.shape == tpa.shape and (host != tpa).any()

    # All the way to the right is the host alone.
    visitor.get_by_role('slider').first.press('End')
    assert wait_for_change(visitor, before).startswith('TPA changed 0.0 %')
    visitor.wait_for_timeout(500)
    assert np.abs(pixels(visitor, 'pair', 0) - pixels(visitor, 'pair', 1)).max() == 0

    with zipfile.ZipFile(saved(visitor, tmp_path)) as content:
        with content.open('labels/00000.png') as labels:
            assert Image.open(labels).mode == 'P'
        assert 'overlays/00000.png' in content.namelist()


def test_sliders_and_other_images_run_no_network(visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    from tpa_mmseg.apis.loading import LoadedModel

    choose(visitor, 'Painted scenes')
    monkeypatch.setattr(LoadedModel, 'look', lambda *_: pytest.fail('a network ran'))
    text = visitor.locator('#summary p').inner_text()
    for slider in visitor.get_by_role('slider').all():
        slider.press('ArrowRight')
        slider.press('ArrowRight')
        text = wait_for_change(visitor, text)
    visitor.locator('#strip button').nth(1).click()
    wait_for_change(visitor, text)


def test_uploads_are_segmented_broken_ones_are_named_and_names_are_text(visitor, tmp_path: Path) -> None:
    good, broken = tmp_path / 'scene<b>.png', tmp_path / 'broken.png'
    list_images('miniature://images/val/00000.png').images[0].resized((128, 160)).save(good)
    broken.write_bytes(b'not an image')
    choose(visitor, 'Painted scenes')  # it chooses the backbone that comes with the package
    visitor.locator('#uploads input[type=file]').first.set_input_files([good, broken])
    visitor.wait_for_selector('#uploads img')
    visitor.get_by_label('Classes').fill('grass; lawn\nwater, flower')
    visitor.get_by_role('button', name='Segment', exact=True).click()
    visitor.wait_for_selector('text=broken.png cannot be read')
    visitor.wait_for_selector('text=Bank of 1 images')
    assert '3 classes: grass (= lawn) / water / flower' in visitor.locator('#model').inner_text()

    visitor.get_by_label('Classes').fill(f'grass, {_EVIL}')
    visitor.get_by_role('button', name='Segment', exact=True).click()
    visitor.wait_for_selector('text=Unknown word')
    assert visitor.locator('img[src=x]').count() == 0 and visitor.evaluate('window.evil') is None


def test_more_uploads_than_allowed_are_refused_in_a_sentence(visitor, tmp_path: Path) -> None:
    files = [tmp_path / f'{number}.png' for number in range(4)]
    for number, file in enumerate(files):
        Image.fromarray(painted(number)).save(file)
    visitor.locator('#uploads input[type=file]').first.set_input_files(files)
    visitor.wait_for_selector('#uploads img')
    visitor.get_by_label('Classes').fill('cat, dog')
    visitor.get_by_role('button', name='Segment', exact=True).click()
    visitor.wait_for_selector('text=At most 3 images')


def test_files_and_addresses_that_a_visitor_names_are_not_read(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = []
    monkeypatch.setattr(
        'gradio.processing_utils.async_ssrf_protected_download', lambda url, *_, **__: fetched.append(url)
    )
    Image.fromarray(painted()).save(tmp_path / 'private.png')
    for path in (str(tmp_path / 'private.png'), 'http://elsewhere.example/a.png'):
        file = {'path': path, 'meta': {'_type': 'gradio.FileData'}}
        for images, classes in (([{'image': file, 'caption': None}], 'grass, water'), (None, file)):
            call = f'{server}gradio_api/call/_segment'
            form = [images, classes, False, 'sclip', 'mini-b8', None]
            event = httpx.post(call, json={'data': form}).json()['event_id']
            answer = httpx.get(f'{call}/{event}', timeout=60).text
            assert answer.startswith('event: error') and 'private' not in answer, answer
    assert fetched == []
    assert httpx.get(f'{server}gradio_api/file={tmp_path / "private.png"}').status_code == 403


PHONE = {'viewport': {'width': 360, 'height': 740}, 'is_mobile': True, 'has_touch': True, 'color_scheme': 'dark'}


@pytest.mark.parametrize('visitor', [PHONE], indirect=True)
def test_on_a_phone_nothing_is_wider_than_the_screen(visitor) -> None:
    choose(visitor, 'Background')
    assert visitor.evaluate('document.documentElement.scrollWidth') <= 360


def test_documents_of_the_page_have_no_path_of_this_machine(visitor, tmp_path: Path) -> None:
    choose(visitor, 'Other words')
    with zipfile.ZipFile(saved(visitor, tmp_path)) as archive:
        content = json.loads(archive.read('areas.json'))
    names = [image['image'] for image in content['images']]
    assert names == ['00096.png', '00097.png'] and len(content['classes']) == 14
    assert str(Path.cwd()) not in json.dumps(content) and str(Path.home()) not in json.dumps(content)


def test_page_says_whether_labels_follow_the_image_and_has_a_switch_for_consistent_tpa(visitor) -> None:
    choose(visitor, 'Painted scenes')
    said = visitor.locator('#summary p').inner_text()
    assert 'follow the image' in said
    # With another k there is another bank, which only the switch has looked at again.
    visitor.get_by_role('slider').last.press('ArrowRight')
    said = wait_for_change(visitor, said)
    assert 'follow the image' not in said
    visitor.locator('#consistent input').check()
    assert 'follow the image' in wait_for_change(visitor, said)
