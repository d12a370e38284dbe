"""A tokenizer of a fixed list of words, for small CLIP models that were trained with few of them.

Nearly all weights of a small CLIP are rows of the token embedding that it never saw in training. A file may leave them
out and name its words instead: the entry ``words`` of its safetensors metadata is a JSON object that maps each word to
its rows of ``token_embedding.weight`` (several if the word has several pieces). Row 0 is padding; the last two rows are
the start and the end of a text. ``text_cfg.vocab_size`` is the number of rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import safetensors
import torch
from torch import Tensor

from ..errors import TPAError
from ..io import parse_json
from ..weights.checkpoints import damage_named

# Words that an error message names as examples.
_EXAMPLES = 12


def stored_words(path: Path) -> dict[str, list[int]] | None:
    """Reads the words that a weights file names and their rows; None if it names none."""
    if path.suffix != '.safetensors':
        return None
    with damage_named(path):
        with safetensors.safe_open(path, framework='pt') as file:
            words = (file.metadata() or {}).get('words')
        return None if words is None else parse_json(words)


class WordTokenizer:
    """Turns texts of known words into tokens and refuses any other word.

    Args:
        words: Each word with its rows of the token embedding.
        rows: Number of rows of the token embedding.
        context_length: Number of tokens of a text; longer ones are cut.
        name: Of the weights file, for error messages.
    """

    def __init__(self, words: Mapping[str, Sequence[int]], rows: int, context_length: int, name: str) -> None:
        self.words, self.rows, self.context_length, self.name = words, rows, context_length, name
        if not isinstance(words, Mapping) or not all(isinstance(pieces, list) for pieces in words.values()):
            raise TPAError(f'{name} does not map its words to lists of rows: use another file.')
        for word, pieces in words.items():
            if not all(type(row) is int and 0 <= row < rows for row in pieces):
                raise TPAError(f'{name} gives the word {word!r} a row that is not one of {rows}: use another file.')

    def __call__(self, texts: str | Sequence[str]) -> Tensor:
        """Returns (n, context_length) int64 tokens."""
        texts = [texts] if isinstance(texts, str) else texts
        split = [re.findall(r'[^\W\d_]+|[^\w\s]+|\S', text.lower()) for text in texts]
        unknown = {
            word: text for text, found in zip(texts, split, strict=True) for word in found if word not in self.words
        }
        if unknown:
            raise TPAError(
                f'Unknown word {", ".join(map(repr, unknown))} (e.g. in {next(iter(unknown.values()))!r}): {self.name} '
                f'was trained with {len(self.words)} words only ({", ".join(list(self.words)[:_EXAMPLES])}, ...). '
                'Use its words, or another CLIP model.'
            )
        tokens = torch.zeros(len(texts), self.context_length, dtype=torch.long)
        for row, found in zip(tokens, split, strict=True):
            inner = [piece for word in found for piece in self.words[word]][: self.context_length - 2]
            # The end of a text has the highest number of all: CLIP finds it by that.
            row[: len(inner) + 2] = torch.tensor([self.rows - 2, *inner, self.rows - 1])
        return tokens
