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
from ..io import write_json, write_png
from .guard import Guard
from .limits import read_classes, read_upload
from .session import BACKBONES, Form, Visit, Visits
from .view import class_table, pictures, summary, thumbnail

_TEXTS = mmengine.fileio.load(Path(__file__).with_name('page.yaml'))
#: Images, classes and model of each example.
EXAMPLES = _TEXTS['examples']
_LOOKS = _TEXTS['looks']
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


class Page:
    """The page. Args: visits: Its visitors."""

    def __init__(self, visits: Visits) -> None:
        self._visits, self._limits = visits, visits.limits
        self.blocks = gr.Blocks(title='TPA', analytics_enabled=False, delete_cache=(600, 3600), fill_width=True)
        with self.blocks:
            gr.HTML(_TEXTS['title'])
            with gr.Row():
                with gr.Column(scale=2, min_width=300):
                    self._build_form()
                with gr.Column(scale=5, min_width=320):
                    self._build_results()
            self._connect()

    def _build_form(self) -> None:
        with gr.Row():
            self._examples = [gr.Button(each['name'], size='sm', min_width=90) for each in EXAMPLES]
        self._uploads = gr.Gallery(label=_TEXTS['limits'].format(self._limits), **_LOOKS['uploads'])
        self._classes = gr.Textbox(**_LOOKS['classes'])
        self._background = gr.Checkbox(label='Background: a class for uncertain pixels')
        backbones = [(f'{name} (miniature)' if tiny else name, name) for name, tiny in BACKBONES.items()]
        with gr.Row():
            self._host = gr.Dropdown(host_names(), value=Form('').host, label='Host', min_width=160)
            self._backbone = gr.Dropdown(backbones, value=Form('').backbone, label='Backbone', min_width=160)
        self._start = gr.Button('Segment', variant='primary')
        self._example = gr.State(None)

    def _build_results(self) -> None:
        self._model = gr.HTML(_TEXTS['hint'], elem_id='model')
        self._pair = gr.ImageSlider(**_LOOKS['pair'])
        self._strip = gr.Gallery(**_LOOKS['strip'])
        with gr.Row():
            self._sliders = [gr.Slider(**each, min_width=220) for each in _TEXTS['sliders']]
            self._sliders.append(gr.Checkbox(label=_TEXTS['consistent'], elem_id='consistent', min_width=220))
        self._summary = gr.HTML(elem_id='summary')
        with gr.Row():
            self._changed, self._anchors = gr.Image(**_LOOKS['changed']), gr.Image(**_LOOKS['anchors'])
        self._table = gr.HTML(elem_id='table')
        self._files = gr.Files(**_LOOKS['files'])
        self._save = gr.Button('Save all images and the bank', size='sm')
        self._all = gr.Files(**_LOOKS['all'], visible=False)

    def _connect(self) -> None:
        form = [self._uploads, self._classes, self._background, self._host, self._backbone, self._example]
        for field in (*form, *self._sliders):
            field.async_move_resource_to_block_cache = _only_uploads
        found = [self._model, self._strip, self._all, *self._sliders]
        seen = [self._pair, self._changed, self._anchors, self._summary, self._table, self._files]
        segment = {'fn': self._segment, 'inputs': form, 'outputs': found, 'show_progress_on': self._model}
        view = {'fn': self._view, 'inputs': self._sliders, 'outputs': seen, 'show_progress': 'hidden'}
        filled = [button.click(partial(_fill, number), None, form) for number, button in enumerate(self._examples)]
        for start in (self._start.click, *(step.then for step in filled)):
            start(**segment, concurrency_id='networks').success(**view)
        self._strip.select(self._choose).success(**view)
        gr.on([slider.input for slider in self._sliders], **view, trigger_mode='always_last')
        self._save.click(self._save_all, self._sliders, self._all)
        self.blocks.unload(self._leave)

    @_told()
    def _segment(
        self, uploads, classes, background, host, backbone, number, request: gr.Request, progress=_PROGRESS
    ) -> list:
        visit, form = self._visit(request), Form(classes, background, host, backbone)
        # An example empties the gallery, so what is in it came later.
        example = {} if uploads or number is None else EXAMPLES[number]
        images = _scenes(**example) if example else self._read(uploads or ())
        segmenter = visit.segment(form, images, example.get('shown'), partial(progress, desc='Segmenting'))
        names = escape(str(read_classes(classes, background, self._limits)))
        model = f'{_TEXTS["miniature"] * BACKBONES[backbone]}<p>{escape(segmenter.description)}; {names}</p>'
        strip = gr.Gallery([(thumbnail(image), image.name) for image in visit.shown], selected_index=0)
        settings = segmenter.fusion.alpha, segmenter.fusion.lambda_, segmenter.bank.rule.k, False
        return [model, strip, gr.Files(visible=False), *settings]

    def _read(self, uploads: Sequence[tuple[str, str | None]]) -> list[ImageSource]:
        if len(uploads) > self._limits.images:
            raise TPAError(f'At most {self._limits.images} images are possible. Remove some.')
        images = []
        for path, _ in uploads:
            try:
                images.append(read_upload(path, self._limits))
            except TPAError as error:
                gr.Warning(escape(user_message(error)))
        return images

    @_told()
    def _view(self, alpha: float, lambda_: float, k: float, consistent: bool, request: gr.Request) -> list:
        visit = self._visit(request)
        result, segmenter = visit.view(alpha, lambda_, k, consistent)
        anchors = segmenter.anchors(result.image, k)
        labels, overlay, areas = files = [visit.file(name) for name in ('labels.png', 'overlay.png', 'areas.json')]
        write_png(labels, result.label_image())
        write_png(overlay, result.legend_overlay())
        write_json(areas, {'model': result.description, 'classes': result.classes, **result.as_dict()})
        pair, text = (result.overlay(host=True), result.overlay()), f'<p>{summary(result)}</p>'
        diagnosis = segmenter.bank_with(k).diagnosis
        if diagnosis is not None:
            text += f'<p>{escape(diagnosis.describe())}</p>'
        return [pair, *pictures(result, anchors), text, class_table(result, anchors), files]

    @_told()
    def _save_all(self, alpha: float, lambda_: float, k: float, consistent: bool, request: gr.Request) -> gr.Files:
        return gr.Files(self._visit(request).save(alpha, lambda_, k, consistent), visible=True)

    @_told()
    def _choose(self, request: gr.Request, event: gr.SelectData) -> None:
        self._visit(request).index = event.index

    def _leave(self, request: gr.Request) -> None:
        self._visits.leave(request.session_hash)

    def _visit(self, request: gr.Request) -> Visit:
        return self._visits.find(request.session_hash)


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
