"""The page itself: the form on one side, results on the other. Needs Gradio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import fastapi
import gradio as gr
import mmengine.fileio

from ..apis import host_names
from ..apis.images import ImageSource, list_images
from ..errors import TPAError, user_message
from .guard import Guard
from .limits import read_classes, read_upload
from .session import BACKBONES, Form, Visits
from .view import class_table, pictures, summary, thumbnail

_TEXTS = mmengine.fileio.load(Path(__file__).with_name('page.yaml'))
#: Images, classes and model of each example.
EXAMPLES = _TEXTS['examples']
_PROGRESS = gr.Progress()


def mount_page(guard: Guard, device: str | None = None) -> fastapi.FastAPI:
    """Return the application of the page. Args: guard: At its door; device: Torch device of the networks."""
    app, limits = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None), guard.limits
    app.middleware('http')(guard)
    page = Page(Visits(limits, device)).blocks.queue(max_size=4 * limits.visitors)
    page.has_launched = True  # otherwise Gradio does not check that files which visitors name are their uploads
    quiet = {'footer_links': [], 'run_history': False, 'show_error': False, 'ssr_mode': False}
    style, most = Path(__file__).with_name('page.css'), f'{limits.megabytes}mb'
    return gr.mount_gradio_app(app, page, '/', css_paths=style, max_file_size=most, **quiet)


@contextmanager
def _told() -> Iterator[None]:
    """Show an error that the visitor can fix on the page, as text."""
    try:
        yield
    except TPAError as error:
        raise gr.Error(escape(user_message(error)), print_exception=False) from error


def _part(name: str, **options: Any) -> gr.blocks.Block:
    """Return a part of the page with its looks from page.yaml."""
    looks = {**_TEXTS['parts'][name], **options}
    return getattr(gr, looks.pop('type'))(elem_id=name, **looks)


class Page:
    """The page. Args: visits: Its visitors."""

    def __init__(self, visits: Visits) -> None:
        self._visits = visits
        with gr.Blocks(title='TPA', analytics_enabled=False, delete_cache=(600, 3600), fill_width=True) as self.blocks:
            gr.HTML(_TEXTS['title'])
            with gr.Row():
                with gr.Column(scale=2, min_width=300):
                    form, starts = self._build_form()
                with gr.Column(scale=5, min_width=320):
                    self._build_results(form, starts)
            self.blocks.unload(self._leave)

    def _build_form(self) -> tuple[list, list]:
        """Return the fields, and the events that start the networks."""
        with gr.Row():
            examples = [gr.Button(each['name'], size='sm', min_width=90) for each in EXAMPLES]
        uploads = _part('uploads', label=_TEXTS['limits'].format(self._visits.limits))
        classes, background = _part('classes'), _part('background')
        backbones = [(f'{name} (miniature)' if tiny else name, name) for name, tiny in BACKBONES.items()]
        host = _part('host', choices=host_names(), value=Form('').host)
        backbone = _part('backbone', choices=backbones, value=Form('').backbone)
        form = [uploads, classes, background, host, backbone, gr.State(None)]
        filled = [each.click(partial(_fill, number), None, form).then for number, each in enumerate(examples)]
        return form, [_part('start').click, *filled]

    def _build_results(self, form: list, starts: list) -> None:
        model, pair, strip = map(_part, ('model', 'pair', 'strip'))
        with gr.Row():
            settings = list(map(_part, ('alpha', 'lambda', 'k')))
        settings, about = [*settings, _part('consistent')], _part('summary')
        with gr.Row():
            changed, anchors = map(_part, ('changed', 'anchors'))
        table, save, files = map(_part, ('table', 'save', 'files'))
        for field in (*form, *settings):
            field.async_move_resource_to_block_cache = _only_uploads
        found, seen = [model, strip, files, *settings], [pair, changed, anchors, about, table]
        segment = {'fn': self._segment, 'inputs': form, 'outputs': found, 'show_progress_on': model}
        view = {'fn': self._view, 'inputs': settings, 'outputs': seen, 'show_progress': 'hidden'}
        for start in starts:
            start(**segment, concurrency_id='networks').success(**view)
        strip.select(self._choose).success(**view)
        gr.on([each.input for each in settings], **view, trigger_mode='always_last')
        save.click(self._save, settings, files)

    @_told()
    def _segment(
        self, uploads, classes, background, host, backbone, number, request: gr.Request, progress=_PROGRESS
    ) -> list:
        visit, form = self._visits.find(request.session_hash), Form(classes, background, host, backbone)
        # An example empties the gallery, so what is in it came later.
        example = {} if uploads or number is None else EXAMPLES[number]
        images = _scenes(**example) if example else self._read(uploads or ())
        segmenter = visit.segment(form, images, example.get('shown'), partial(progress, desc='Segmenting'))
        names = escape(str(read_classes(classes, self._visits.limits)))
        model = f'{_TEXTS["miniature"] * BACKBONES[backbone]}<p>{escape(segmenter.description)}; {names}</p>'
        strip = gr.Gallery([(thumbnail(image), image.name) for image in visit.shown], selected_index=0)
        settings = segmenter.fusion.alpha, segmenter.fusion.lambda_, segmenter.bank.rule.k, False
        return [model, strip, gr.Files(visible=False), *settings]

    def _read(self, uploads: Sequence[tuple[str, str | None]]) -> list[ImageSource]:
        limits, images = self._visits.limits, []
        if len(uploads) > limits.images:
            raise TPAError(f'At most {limits.images} images are possible. Remove some.')
        for path, _ in uploads:
            try:
                images.append(read_upload(path, limits))
            except TPAError as error:
                gr.Warning(escape(user_message(error)))
        return images

    @_told()
    def _view(self, alpha: float, lambda_: float, k: float, consistent: bool, request: gr.Request) -> list:
        result, segmenter = self._visits.find(request.session_hash).view(alpha, lambda_, k, consistent)
        anchors, about = segmenter.anchors(result.image, k), summary(result, segmenter.bank_with(k))
        pair = result.overlay(host=True), result.overlay()
        return [pair, *pictures(result, anchors), about, class_table(result, anchors)]

    @_told()
    def _save(self, alpha: float, lambda_: float, k: float, consistent: bool, request: gr.Request) -> gr.Files:
        return gr.Files(self._visits.find(request.session_hash).save(alpha, lambda_, k, consistent), visible=True)

    @_told()
    def _choose(self, request: gr.Request, event: gr.SelectData) -> None:
        self._visits.find(request.session_hash).index = event.index

    def _leave(self, request: gr.Request) -> None:
        self._visits.leave(request.session_hash)


async def _only_uploads(path: str) -> str:
    """Take the place of a method that fetches any address that a visitor names."""
    if not Path(path).resolve().is_relative_to(Path(gr.utils.get_upload_folder()).resolve()):
        raise gr.Error('Only uploaded images can be segmented.', print_exception=False)
    return path


def _fill(number: int) -> list:
    """Return the form of an example: no uploads, but the number of the example."""
    example = EXAMPLES[number]
    return [None, example['classes'], example['background'], Form('').host, example['backbone'], number]


def _scenes(images: str, first: int, pool: int, **_: Any) -> list[ImageSource]:
    return list_images([images.format(index) for index in range(first, first + pool)]).images
