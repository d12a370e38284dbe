"""The page itself: controls on one side, results on the other. Needs NiceGUI."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from nicegui import events, run, ui

from ..apis import host_names
from ..errors import TPAError, user_message
from .examples import Example, read_examples
from .limits import FORMATS, Limits
from .outcome import Outcome
from .session import BACKBONES, FormValues, PageSession, SliderValues

T = TypeVar('T')

# Symbol, lowest and highest value, step, and meaning of a slider.
_SLIDERS = {
    'alpha': ('α', 0.0, 1.0, 0.05, 'share of the host'),
    'lambda_': ('λ', 0.0, 20.0, 0.5, 'weight of the prototypes'),
    'k': ('k', 1.0, 6.0, 0.1, 'confidence of anchors'),
}


class Page:
    """The page of one visitor.

    Args:
        limits: Limits of uploads.
        device: Torch device of the models.
    """

    def __init__(self, limits: Limits, device: str | None = None) -> None:
        self.session = PageSession(limits, device)
        self.busy, self.progress = False, 0.0
        self._wanted: tuple[int, SliderValues] | None = None
        self._drawing = self._left = False

    def build(self) -> None:
        """Create all elements of the page."""
        ui.context.client.on_delete(self._leave)
        # Readable on white and on black.
        ui.colors(primary='#3a7ab8')
        with ui.column().classes('w-full max-w-screen-2xl mx-auto gap-4'):
            with ui.column().classes('gap-0'):
                ui.label('Segment your own images').classes('text-2xl font-semibold').props('role=heading')
                ui.label('Segmentation by a host, and with test-time prototype adaptation (TPA).').classes('opacity-70')
            with ui.element('div').classes('w-full grid grid-cols-1 lg:grid-cols-[20rem_minmax(0,1fr)] gap-6'):
                with ui.column().classes('w-full gap-3'):
                    self._build_controls()
                with ui.column().classes('w-full gap-3'):
                    self._build_results()

    def _build_controls(self) -> None:
        ui.label('Examples').classes('font-semibold')
        with ui.row().classes('gap-2'):
            for example in read_examples():
                button = ui.button(example.name, on_click=partial(self._take, example)).props('outline no-caps dense')
                button.classes('px-2').bind_enabled_from(self, 'busy', backward=lambda busy: not busy)
        self._build_upload()
        self._classes = ui.textarea('Classes, one per line; synonyms after ;', placeholder='cat\nsofa\ntv; television')
        self._classes.classes('w-full').props('outlined input-class="min-h-32 leading-snug" data-part=classes')
        self._background = ui.checkbox('Add a background').props('dense')
        with ui.row().classes('w-full no-wrap gap-2'):
            self._host = ui.select(host_names(), value='sclip', label='Host').classes('w-1/2').props('outlined dense')
            self._backbone = ui.select(list(BACKBONES), value=BACKBONES[0], label='Backbone')
            self._backbone.classes('w-1/2').props('outlined dense')
        start = ui.button('Segment', on_click=self._segment).classes('w-full').props('no-caps data-part=segment')
        start.bind_enabled_from(self, 'busy', backward=lambda busy: not busy)
        bar = ui.linear_progress(show_value=False).props('rounded aria-label=Progress')
        bar.bind_value_from(self, 'progress').bind_visibility_from(self, 'busy')

    def _build_upload(self) -> None:
        limits = self.session.limits
        kinds = f'{", ".join(FORMATS[:-1])} or {FORMATS[-1]}'
        limit = f'At most {limits.images} images ({kinds}) of {limits.megabytes:g} MB each.'
        self._upload = ui.upload(
            label='Drop images here',
            multiple=True,
            auto_upload=True,
            max_file_size=limits.bytes,
            max_files=limits.images,
            on_upload=self._receive,
            on_rejected=lambda: self._show_message(f'Some files were refused. {limit}'),
        )
        self._upload.classes('w-full').props('flat bordered accept="image/*"')
        with ui.row().classes('w-full no-wrap items-center justify-between gap-2'):
            self._count = ui.label(limit).classes('text-sm opacity-70').props('data-part=count')
            ui.button('Remove all', on_click=self._clear).props('flat dense no-caps').classes('shrink-0')

    def _build_results(self) -> None:
        self._message = ui.label().classes('w-full rounded p-3 bg-red-100 text-red-900').props('role=alert')
        self._message.set_visibility(False)
        self._hint = ui.label('Pick an example, or upload images and enter class names.').classes('opacity-70')
        self._model = ui.label().classes('w-full rounded p-2 text-sm bg-blue-100 text-blue-900')
        self._model.props('role=status data-part=model').set_visibility(False)
        self._results = ui.column().classes('w-full gap-4')
        with self._results:
            self._build_sliders()
            self._outcome = Outcome(self._choose)
            with ui.row().classes('gap-2'):
                for name, download in (('masks', self._download_masks), ('bank', self._download_bank)):
                    ui.button(f'Download {name}', icon='download', on_click=download).props('outline no-caps')
        self._results.set_visibility(False)

    def _build_sliders(self) -> None:
        self._sliders: dict[str, ui.slider] = {}
        with ui.element('div').classes('w-full grid grid-cols-1 sm:grid-cols-3 gap-x-8 gap-y-1'):
            for key, (symbol, low, high, step, meaning) in _SLIDERS.items():
                with ui.column().classes('w-full gap-0'):
                    value = getattr(SliderValues(), key)
                    slider = ui.slider(min=low, max=high, step=step, value=value, on_change=self._moved)
                    slider.props(f'aria-label="{symbol}: {meaning}" data-part={key}').classes('order-last')
                    with ui.row().classes('w-full justify-between items-baseline no-wrap'):
                        ui.label(f'{symbol}, {meaning}').classes('text-sm')
                        shown = ui.label().classes('font-mono')
                        shown.bind_text_from(slider, 'value', backward='{:g}'.format)
                    self._sliders[key] = slider

    # Events

    async def _receive(self, event: events.UploadEventArguments) -> None:
        if event.file.size() > self.session.limits.bytes:
            self._show_message('A file was refused: it is too large.')
            return
        content = await event.file.read()
        await self._try(self.session.add, content, event.file.name)
        self._show_count()

    def _clear(self) -> None:
        self.session.clear()
        self._upload.reset()
        self._show_count()

    async def _take(self, example: Example) -> None:
        if self.busy:
            return
        form = await self._try(self.session.take, example)
        self._classes.value, self._background.value = form.classes, form.background
        self._host.value, self._backbone.value = form.host, form.backbone
        self._upload.reset()
        self._show_count()
        await self._segment()

    async def _segment(self) -> None:
        if self.busy:
            return
        self._show_message('')
        self.busy, self.progress = True, 0.0
        form = FormValues(self._classes.value or '', self._background.value, self._host.value, self._backbone.value)
        try:
            images = await self._try(self.session.segment, form, self._report)
        finally:
            self.busy = False
        self._results.set_visibility(bool(self.session.segmented))
        if images is None:
            return
        self._hint.set_visibility(False)
        self._model.set_text(self.session.description)
        self._model.set_visibility(True)
        self._outcome.offer(images)
        self._wanted = None
        for key, slider in self._sliders.items():
            slider.value = getattr(self.session.defaults, key)
        await self._choose(0)

    def _report(self, share: float) -> None:
        self.progress = share

    async def _moved(self) -> None:
        if self._wanted is not None:
            await self._choose(self._wanted[0])

    async def _choose(self, index: int) -> None:
        """Show an image with the settings of the sliders. While they move, settings in between are left out."""
        if self.busy:
            return
        self._wanted = index, self._slider_values()
        if self._drawing:
            return
        self._drawing = True
        try:
            drawn = None
            while drawn != self._wanted:
                drawn = self._wanted
                view = await self._try(self.session.view, *drawn)
                if view is not None:
                    self._outcome.show(drawn[0], view)
        finally:
            self._drawing = False

    async def _download_masks(self) -> None:
        await self._download(self.session.archive, 'masks.zip')

    async def _download_bank(self) -> None:
        await self._download(self.session.bank, 'bank.safetensors')

    async def _download(self, make: Callable[[SliderValues], bytes], file: str) -> None:
        content = await self._try(make, self._slider_values())
        if content is not None:
            ui.download.content(content, file)

    def _leave(self) -> None:
        """Free everything that was loaded for a visitor who has left."""
        self._left = True
        self.session = PageSession(self.session.limits)

    # Helpers

    def _slider_values(self) -> SliderValues:
        return SliderValues(**{key: float(slider.value) for key, slider in self._sliders.items()})

    async def _try(self, action: Callable[..., T], *args: Any) -> T | None:
        """Run an action in a thread. An error that the visitor can fix is shown on the page."""
        try:
            found = await run.io_bound(action, *args)
            return None if self._left else found
        except TPAError as error:
            if not self._left:
                self._show_message(user_message(error))
            return None

    def _show_message(self, text: str) -> None:
        self._message.set_text(text)
        self._message.set_visibility(bool(text))

    def _show_count(self) -> None:
        count = len(self.session.images)
        self._count.set_text(f'{count} image{"s" * (count != 1)} of at most {self.session.limits.images}.')
