"""The tables of docs/options.md: options of classes by their signatures, with the lines of their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from tpa_mmseg.apis import Segmenter, segment
from tpa_mmseg.core import AnchorRule, Fusion
from tpa_mmseg.datasets import PoolOptions
from tpa_mmseg.encoders import TimmEncoder
from tpa_mmseg.engine import ComparisonHook, PrototypeBankHook
from tpa_mmseg.evaluation import HostTPAMetric
from tpa_mmseg.hosts import CLIPHost, SegmentorHost
from tpa_mmseg.options import options_of_class
from tpa_mmseg.options.values import describe
from tpa_mmseg.segmentors import TPASegmentor

#: Mark in the page -> class.
CLASSES: dict[str, Callable] = {
    'segment': segment,
    'Segmenter': Segmenter,
    'TPASegmentor': TPASegmentor,
    'AnchorRule': AnchorRule,
    'Fusion': Fusion,
    'PrototypeBankHook': PrototypeBankHook,
    'PoolOptions': PoolOptions,
    'TimmEncoder': TimmEncoder,
    'CLIPHost': CLIPHost,
    'SegmentorHost': SegmentorHost,
    'HostTPAMetric': HostTPAMetric,
    'ComparisonHook': ComparisonHook,
}


def option_rows(kind: Callable) -> list[tuple[str, str, str, str]]:
    """Returns name, values, default and meaning of each option that a class documents."""
    options, meanings = options_of_class(kind).known, documented(kind)
    return [
        (
            f'`{name}`',
            _escape(' and '.join(dict.fromkeys(map(describe, option.annotations))) or 'any'),
            'required' if option.required else f'`{_shown(option.default)}`',
            _escape(re.sub(r':\w+:`~?(?:[\w.]*\.)?(\w+)`', r'`\1`', meanings[name]).replace('``', '`')),
        )
        for name, option in options.items()
        if name in meanings
    ]


def documented(kind: Callable) -> dict[str, str]:
    """Returns the meaning of every argument in the section Args of a docstring."""
    section = re.search(r'^Args:\n((?:[ ]{4}.*\n?|\n)*)', inspect.getdoc(kind) or '', re.MULTILINE)
    parts = re.findall(r'^ {4}([\w, ]+): (.*(?:\n {8}.*)*)', section.group(1) if section else '', re.MULTILINE)
    return {name: ' '.join(text.split()) for names, text in parts for name in names.split(', ')}


def _shown(default: object) -> str:
    text = repr(default)
    return text if len(text) <= 40 else '...'


def _escape(text: str) -> str:
    return text.replace('|', '\\|')
