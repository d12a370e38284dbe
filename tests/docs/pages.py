"""The pages of the documentation, and the blocks of commands and code in them.

Every block runs, on the miniature suite, unless the line before it is a mark. ``<!-- file: NAME -->``: the text around
tells the reader to save the block under this name, and later blocks find it there. ``<!-- not run: REASON -->``: it
cannot run here, because it ``needs`` something, is ``a part of`` a file, or is run by another test, ``tests/....py``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.helpers.world import ROOT

PAGES = sorted(
    [*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md'), ROOT / 'configs/README.md', ROOT / 'data/README.md']
)
_BLOCK = re.compile(
    r'^(?:<!-- (?:file: (\S+)|not run: ([^\n]+)) -->\n)?```(bash|sh|console|python)\n(.*?)^```$',
    re.DOTALL | re.MULTILINE,
)

_FENCE = re.compile(
    r'^[ \t]*(?:```|~~~)[ \t]*(?:\{code-block\}[ \t]*)?(?:bash|sh|shell|console|python|py)\b', re.MULTILINE
)


class Block(NamedTuple):
    """A block. Args: file: The name to save it under, or None; reason: Why it is not run, or empty; language; text."""

    file: str | None
    reason: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The command lines, with continued lines joined and comments removed."""
        lines = self.text.replace('\\\n', ' ').splitlines()
        return [command for line in lines if (command := re.sub(r'\s+#\s.*', '', line).strip())]


def blocks(page: str) -> list[Block]:
    """Returns the blocks of a page, in order. Args: page: Its path in the repository."""
    text = (ROOT / page).read_text(encoding='utf-8')
    return [Block(file or None, reason, *rest) for file, reason, *rest in _BLOCK.findall(text)]


def file_of(page: str, name: str) -> str:
    """Returns the text of a file that a page tells its readers to save."""
    (text,) = [block.text for block in blocks(page) if block.file == name]
    return text


def fences(page: str) -> int:
    """Returns the number of blocks of commands or code, however they are indented."""
    text = (ROOT / page).read_text(encoding='utf-8')
    return len(_FENCE.findall(text))
