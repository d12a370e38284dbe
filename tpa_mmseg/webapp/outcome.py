"""The part of the page with the results: images to choose from, panels, a table that is also the legend."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from nicegui import ui

from ..apis.images import ImageSource
from .view import PANELS, View, data_url, difference_colors, thumbnail

_COLUMNS = {
    'name': 'Class',
    'host': 'Host, area in %',
    'tpa': 'TPA, area in %',
    'here': 'Anchors in this image',
    'bank': 'Anchors in the bank',
    'prototype': 'Prototype',
}
# Vue escapes the name; the color is our own.
_NAME_CELL = """
<q-td :props="props">
  <span :style="{display: 'inline-block', width: '0.9em', height: '0.9em', marginRight: '0.5em', borderRadius: '2px',
                 verticalAlign: '-0.1em', outline: '1px solid #8888', background: props.row.color}"></span>
  {{ props.value }}
</q-td>
"""
_CHOSEN = 'outline outline-2 outline-blue-600'


class Outcome:
    """Shows one of several segmentations. Its elements are created in the current place of the page.

    Args:
        choose: Called with the index of the image that a visitor clicks on.
    """

    def __init__(self, choose: Callable[[int], Awaitable[None]]) -> None:
        self._choose = choose
        self._strip = ui.row().classes('w-full gap-2 p-1')
        self._buttons: list[ui.element] = []
        self._panels: dict[str, ui.element] = {}
        with ui.element('div').classes('w-full grid grid-cols-2 lg:grid-cols-3 gap-3'):
            for part, title in PANELS.items():
                with ui.element('figure').classes('m-0 min-w-0'):
                    with ui.element('figcaption').classes('text-sm font-semibold'):
                        ui.label(title)
                    self._panels[part] = ui.element('img').props(f'data-part={part} alt="{title}"')
                    self._panels[part].classes('w-full rounded border border-gray-400')
        self._legend = ui.row().classes('items-center gap-x-4 gap-y-1 text-sm').props('data-part=legend')
        self._build_difference()
        self._bank = ui.label().props('data-part=bank')
        columns = [
            {'name': key, 'label': label, 'field': key, 'align': 'left' if key == 'name' else 'right'}
            for key, label in _COLUMNS.items()
        ]
        self._table = ui.table(columns=columns, rows=[], row_key='name').classes('w-full')
        self._table.props('dense flat bordered hide-pagination :rows-per-page-options="[0]"')
        self._table.add_slot('body-cell-name', _NAME_CELL)

    def _build_difference(self) -> None:
        with ui.row().classes('items-center gap-4 text-sm'):
            ui.label('Difference').classes('font-semibold')
            for word, color in difference_colors().items():
                _swatch(word, color)
            self._changed = ui.label().props('data-part=changed role=status')

    def offer(self, images: Sequence[ImageSource]) -> None:
        """Show small images to choose from."""
        self._strip.clear()
        self._buttons = []
        with self._strip:
            for number, image in enumerate(images):
                button = (
                    ui.element('button').on('click', partial(self._choose, number)).classes('rounded cursor-pointer')
                )
                button.props['aria-label'] = f'Show {image.name}'
                button.props['title'] = image.name
                with button:
                    small = ui.element('img').classes('h-16 rounded').props('alt=""')
                    small.props['src'] = data_url(thumbnail(image))
                self._buttons.append(button)

    def show(self, index: int, view: View) -> None:
        """Show a segmentation. Args: index: Index of the image; view: Its view."""
        for number, button in enumerate(self._buttons):
            button.classes(add=_CHOSEN) if number == index else button.classes(remove=_CHOSEN)
            button.props['aria-pressed'] = 'true' if number == index else 'false'
        for part, url in view.panels.items():
            self._panels[part].props['src'] = url
        self._legend.clear()
        with self._legend:
            ui.label('Classes').classes('font-semibold')
            for row in view.rows:
                if row['host'] or row['tpa']:
                    _swatch(row['name'], row['color'])
        self._changed.set_text(f'TPA changed {100 * view.changed:.1f} % of the pixels.')
        self._bank.set_text(view.bank)
        self._table.rows = view.rows


def _swatch(text: str, color: str) -> None:
    with ui.row().classes('items-center gap-1'):
        ui.element('span').classes('inline-block w-4 h-4 rounded').style(f'background: {color}')
        ui.label(text)
