"""The view of a segmentation: pictures, and a table that is also the legend."""

from __future__ import annotations

from html import escape

import numpy as np
from PIL import Image

from ..apis import Segmentation
from ..apis.images import ImageSource
from ..apis.render import class_counts
from ..core import PrototypeBank
from ..evaluation import describe_bank
from ..visualization import class_palette, draw_anchors, panel_size

_COLUMNS = ('Class', 'Host, %', 'TPA, %', 'Change', 'Anchors here', 'in the bank', 'Prototype')
# Height of an image to click on.
_THUMBNAIL = 96


def pictures(result: Segmentation, anchors: np.ndarray) -> tuple[Image.Image, Image.Image]:
    """Draw what TPA changed, in the colors of the new classes, and the anchors, both on the image in gray.

    Args:
        result: The segmentation.
        anchors: (H, W) class of every anchor, -1 elsewhere.
    """
    gray = result.image.resized(panel_size(*result.labels.shape)).convert('L').convert('RGB')
    colors = class_palette(len(result.palette), result.palette)
    changed = np.where(result.labels == result.host_labels, -1, result.labels.astype(np.int32))
    return draw_anchors(gray, changed, colors), draw_anchors(gray, anchors, colors)


def thumbnail(image: ImageSource) -> Image.Image:
    """Return a small image to click on."""
    height, width = image.load()['img_shape'][:2]
    return image.resized((_THUMBNAIL, max(1, round(width * _THUMBNAIL / height))))


def summary(result: Segmentation, bank: PrototypeBank) -> str:
    """Describe what TPA did, and its bank, as HTML."""
    changed = f'TPA changed {100 * result.changed_fraction:.1f} % of the pixels.'
    return f'<p>{changed} {escape(describe_bank(bank, result.classes))}</p>'


def class_table(result: Segmentation, anchors: np.ndarray) -> str:
    """Return the classes that occur or have anchors as HTML, the largest first. Names are text whatever they contain.

    Args:
        result, anchors: As for :func:`pictures`.
    """
    counts = class_counts(anchors, len(result.classes))
    found = zip(result.areas, result.coverage, result.palette, counts, strict=True)
    lines = [_row(_COLUMNS, 'th')]
    for area, known, color, count in sorted(found, key=lambda row: -row[0].pixels):
        if area.pixels or area.host_pixels or known.anchors:
            swatch = f'<i style="background: rgb{tuple(map(int, color))}"></i>{escape(area.name)}'
            shares = (f'{100 * share:.1f}' for share in (area.host_share, area.share))
            change = f'{100 * (area.share - area.host_share):+.1f}'
            change = '' if float(change) == 0 else change
            lines.append(_row((swatch, *shares, change, f'{count:,}', f'{known.anchors:,}', '–✓'[known.covered])))
    return f'<div class="classes"><table>{"".join(lines)}</table></div>'


def _row(cells: tuple[str, ...], kind: str = 'td') -> str:
    return f'<tr>{"".join(f"<{kind}>{cell}</{kind}>" for cell in cells)}</tr>'
