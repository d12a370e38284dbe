"""The file of a PrototypeBank: safetensors with everything needed to trust it. No pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ..errors import TPAError
from ..io import atomic_write, parse_json

# One key for all that is not a tensor: safetensors writes several in random order, and equal banks are equal files.
_KEY = 'tpa_mmseg.bank/2'
#: The tensors of a bank: (C, D) float64 sums and (C,) int64 counts, of all images and of one half of them.
TENSORS = ('sums', 'counts', 'half_sums', 'half_counts')
_ABOUT = {'images': int, 'rule': dict, 'fingerprint': dict, 'pool': list}
_PARTS = {'host': 'another host', 'encoder': 'another encoder', 'classes': 'another class list'}


def write_bank(path: str | os.PathLike, parts: Mapping[str, Tensor], about: dict) -> None:
    """Writes a bank so that the file is either complete or not there.

    Args:
        path: Where to.
        parts: Every one of :data:`TENSORS`.
        about: Everything else, as JSON values.
    """
    with atomic_write(path) as file:
        file.write(save({name: part.cpu() for name, part in parts.items()}, {_KEY: json.dumps(about)}))


def read_bank(path: str | os.PathLike) -> tuple[dict[str, Tensor], dict]:
    """Reads what write_bank wrote. Raises TPAError for a file that is missing, truncated, foreign or damaged."""
    path = Path(path)
    if not path.is_file():
        raise TPAError(f'Bank file not found: {path}. Build one with tools/build_bank.py, or omit --bank.')
    try:
        with safe_open(path, framework='pt') as file:
            metadata = file.metadata() or {}
            if _KEY not in metadata:
                raise TPAError(f'{path} is not a prototype bank of this version: give the file of a bank.')
            parts = {name: file.get_tensor(name) for name in TENSORS}
        about = parse_json(metadata[_KEY])
        _check(parts, about)
    except (SafetensorError, OSError, KeyError, ValueError, MemoryError) as error:
        raise TPAError(f'{path} is not a readable prototype bank ({error}): delete it and build it again.') from error
    return parts, about


def _check(parts: Mapping[str, Tensor], about: dict) -> None:
    """Raises ValueError for content that write_bank does not write. Args: those of write_bank."""
    for prefix in ('', 'half_'):
        sums, counts = parts[f'{prefix}sums'], parts[f'{prefix}counts']
        if (sums.dtype, sums.ndim, counts.dtype) != (torch.float64, 2, torch.int64) or counts.shape != sums.shape[:1]:
            raise ValueError(f'sums are {tuple(sums.shape)} {sums.dtype}, counts {tuple(counts.shape)} {counts.dtype}')
        if not torch.isfinite(sums).all() or (counts < 0).any():
            raise ValueError('NaN, infinity or negative counts')
    if parts['sums'].shape != parts['half_sums'].shape or (parts['half_counts'] > parts['counts']).any():
        raise ValueError('its half is not one of it')
    if not isinstance(about, dict):
        raise ValueError('no description')
    for key, kind in _ABOUT.items():
        if type(about.get(key)) is not kind:
            raise ValueError(f'{key} is not of type {kind.__name__}')
    if about['images'] < 0 or not all(isinstance(name, str) for name in about['pool']):
        raise ValueError('images or their names are not those of a pool')


def check_fingerprint(fingerprint: dict, expected: dict, path: str | os.PathLike) -> None:
    """Raises TPAError when a bank was made with another host, encoder or class list than ``expected`` names."""
    for part, name in _PARTS.items():
        ours, theirs = expected.get(part), fingerprint.get(part)
        if ours is not None and theirs != as_json(ours):
            raise TPAError(
                f'The bank {path} was made with {name} ({_difference(theirs, as_json(ours))}): '
                'build one for this config, or test with the config it was made with.'
            )


def as_json(value: Any) -> Any:
    """What a value looks like after a trip through the file."""
    return json.loads(json.dumps(value))


def _difference(theirs: Any, ours: Any) -> str:
    """The first thing in which two descriptions differ, in a few words."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in ours:
            if theirs.get(key) != ours[key]:
                return f'{key}: {_short(theirs.get(key))} there, {_short(ours[key])} here'
    if isinstance(theirs, list) and isinstance(ours, list):
        if len(theirs) != len(ours):
            return f'{len(theirs)} classes there, {len(ours)} here'
        number, there, here = next((i, a, b) for i, (a, b) in enumerate(zip(theirs, ours, strict=True)) if a != b)
        return f'class {number} is {there!r} there, {here!r} here'
    return f'{_short(theirs)} there, {_short(ours)} here'


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + '...'
