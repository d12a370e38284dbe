"""Captions of pictures, the only words that the miniature CLIP has ever read."""

from __future__ import annotations

import random

import open_clip
from torch import Tensor

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


def tokenizer() -> open_clip.SimpleTokenizer:
    """open_clip's own, for sentences as short as ours."""
    return open_clip.SimpleTokenizer(context_length=CONTEXT)


def rows_in_use() -> list[int]:
    """The rows of the vocabulary that occur in captions: the others never learn anything and are not stored."""
    tokens: Tensor = tokenizer()([f'{template(word)} and a' for template in TEMPLATES for word in _all_words()])
    return sorted(set(tokens.flatten().tolist()))


def _all_words() -> list[str]:
    return [word for words in WORDS.values() for word in words]
