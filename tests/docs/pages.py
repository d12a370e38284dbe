"""The pages of the documentation, and the blocks in them that can run on the miniature suite.

``<!-- run -->`` before a block: it runs as it is printed. ``<!-- file: NAME -->``: the text around tells the reader to
save it under this name, and later blocks find it there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.helpers.world import ROOT

PAGES = sorted(
    [*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md'), ROOT / 'configs/README.md', ROOT / 'data/README.md']
)
_BLOCK = re.compile(r'^<!-- (run|file: (\S+)) -->\n```(\w+)\n(.*?)^```$', re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A marked block. Args: file: The name to save it under, or None; language; text."""

    file: str | None
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The command lines, with continued lines joined and comments removed."""
        lines = self.text.replace('\\\n', ' ').splitlines()
        return [command for line in lines if (command := re.sub(r'\s+#\s.*', '', line).strip())]


def blocks(page: str) -> list[Block]:
    """Returns the marked blocks of a page, in order. Args: page: Its path in the repository."""
    text = (ROOT / page).read_text(encoding='utf-8')
    return [Block(file, language, body) for _, file, language, body in _BLOCK.findall(text)]


def file_of(page: str, name: str) -> str:
    """Returns the text of a file that a page tells its readers to save."""
    (text,) = [block.text for block in blocks(page) if block.file == name]
    return text


def checkout(folder: Path) -> Path:
    """Makes a folder look like a checkout for commands that name configs."""
    (folder / 'configs').symlink_to(ROOT / 'configs')
    return folder
