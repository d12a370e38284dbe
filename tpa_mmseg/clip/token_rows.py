"""CLIP files with a part of the token embedding: only the rows of the word pieces that their model was trained with.

In a small CLIP nearly all numbers are rows of the token embedding that it never saw. Such a file may leave them out:
``token_embedding.weight`` then holds n rows only, and ``token_embedding.rows``, n integers, says which ones they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ..errors import TPAError

# With a prefix in models that keep their text tower in a module of its own.
_WEIGHT, _ROWS = 'token_embedding.weight', 'token_embedding.rows'


def keep_rows(state: Mapping[str, Tensor], rows: Sequence[int] | Tensor) -> dict[str, Tensor]:
    """The state dict of a CLIP with only some rows of its token embedding.

    Args:
        state: The whole state dict.
        rows: n word pieces to keep.
    """
    rows = torch.as_tensor(rows, dtype=torch.int64).unique()
    (weight,) = [name for name in state if name.endswith(_WEIGHT)]
    prefix = weight.removesuffix(_WEIGHT)
    return {**state, weight: state[weight][rows], f'{prefix}{_ROWS}': rows}


def stored_rows(state: Mapping[str, Tensor]) -> Tensor | None:
    """The (n,) word pieces that a file holds; None where it holds all."""
    return next((rows for name, rows in state.items() if name.endswith(_ROWS)), None)


def expand_rows(state: Mapping[str, Tensor], vocabulary: int, path: Path) -> dict[str, Tensor]:
    """The state dict with the whole token embedding, zero in the rows that the file leaves out.

    Args:
        state: As it is in the file.
        vocabulary: How many rows the whole embedding has.
        path: The file, for the sentence where its rows make no sense.
    """
    rows = stored_rows(state)
    if rows is None:
        return dict(state)
    name = next(name for name in state if name.endswith(_ROWS))
    weight = name.removesuffix(_ROWS) + _WEIGHT
    some = state.get(weight)
    fits = some is not None and rows.ndim == 1 and len(rows) == len(some) and not rows.is_floating_point()
    if not fits or rows.unique().numel() != rows.numel() or rows.min() < 0 or rows.max() >= vocabulary:
        raise TPAError(
            f'{path}: {name} must name each row of {weight} once, with numbers below the vocabulary of {vocabulary}: '
            'write the file again.'
        )
    whole = some.new_zeros(vocabulary, some.shape[1])
    whole[rows.long()] = some
    return {**{key: value for key, value in state.items() if key != name}, weight: whole}


class KnownWords:
    """A tokenizer that refuses words for which a file has no embedding.

    Args:
        tokenizer: Turns strings into (n, context length) tokens.
        rows: (n,) word pieces that are known.
        path: The file, for the sentence.
    """

    def __init__(self, tokenizer: Callable[[Sequence[str]], Tensor], rows: Tensor, path: Path) -> None:
        self.tokenizer = tokenizer
        self.rows = rows.long()
        self.path = path

    def __call__(self, texts: str | Sequence[str]) -> Tensor:
        texts = [texts] if isinstance(texts, str) else texts
        tokens = self.tokenizer(texts)
        # The end of a text has the highest number of all; what follows it is padding, which no causal tower sees.
        inside = torch.arange(tokens.shape[1]) <= tokens.argmax(1, keepdim=True)
        unknown = inside & ~torch.isin(tokens, self.rows)
        if unknown.any():
            index, place = unknown.nonzero()[0].tolist()
            piece = self.tokenizer.decode(tokens[index, place : place + 1].tolist()).strip()
            raise TPAError(
                f'{self.path.name} was trained with {len(self.rows)} word pieces only and does not know {piece!r} in '
                f'{texts[index]!r}: use the words that its card names, or another CLIP.'
            )
        return tokens
