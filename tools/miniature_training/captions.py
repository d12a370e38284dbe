"""Captions of pictures, the only words that the miniature CLIP has ever read."""

from __future__ import annotations

import random
import re
from functools import lru_cache

import open_clip

from tpa_mmseg.clip.tokenizer import WordTokenizer
from tpa_mmseg.miniature.words import WORDS
from tpa_mmseg.miniature.world import CLASSES

TEMPLATES = tuple(open_clip.OPENAI_IMAGENET_TEMPLATES)

# Tokens of the longest caption fit.
CONTEXT = 32


def caption(classes: list[int], rng: random.Random) -> str:
    """A sentence that names the classes, in their order."""
    words = [_choose(WORDS[CLASSES[index]], rng) for index in classes]
    return rng.choice(TEMPLATES)(' and a '.join(words))


def _choose(words: tuple[str, ...], rng: random.Random) -> str:
    """The class's own name half of the time."""
    return words[0] if rng.random() < 0.5 else rng.choice(words)


@lru_cache(maxsize=1)
def vocabulary() -> tuple[dict[str, list[int]], int]:
    """The words of all captions, those of the classes first, with their rows of the token embedding.

    Words have the pieces that open_clip's tokenizer gives them; only pieces in use have a row.

    Returns:
        The rows of each word, and the number of rows: 0 is padding, the last two are the start and the end of a text.
    """
    pieces = open_clip.SimpleTokenizer()
    names = [word for words in WORDS.values() for word in words]
    sentences = ' '.join(template('and') for template in TEMPLATES).lower()
    others = dict.fromkeys(re.findall(r'[^\W\d_]+|[^\w\s]+', sentences))
    tokens = {word: pieces.encode(word) for word in (*names, *others)}
    row = {piece: number for number, piece in enumerate(sorted({p for found in tokens.values() for p in found}), 1)}
    return {word: [row[piece] for piece in found] for word, found in tokens.items()}, len(row) + 3


def tokenizer() -> WordTokenizer:
    """The tokenizer of the captions."""
    return WordTokenizer(*vocabulary(), CONTEXT, 'the miniature CLIP')
