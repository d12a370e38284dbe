"""The committed numbers of a small slice, and whether weights and code still give them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tpa_mmseg.errors import TPAError
from tpa_mmseg.io import write_json

from .cards import WEIGHTS
from .measure import HOSTS, PAPER_HOSTS, config_of, measure

#: What :func:`record` wrote.
NUMBERS = Path(__file__).resolve().parents[2] / 'tests' / 'miniature' / 'numbers.json'
#: Scores may differ by so much: sums run in another order on another machine, and a pixel on the border changes sides.
TOLERANCE = 0.15


@dataclass(frozen=True)
class Slice:
    """The scenes on which numbers are compared. They are of val: test is for the last look."""

    split: str = 'val'
    size: int = 30
    pool: int = 20


SLICE = Slice()


def measure_slice(host: str, work_dir: Path) -> dict[str, float]:
    """The mIoU of a host alone, as ``base``, and with ``tpa``.

    Args:
        host: A key of :data:`~.measure.HOSTS`.
        work_dir: For banks and logs.
    """
    found = measure(config_of(host), work_dir / host, SLICE.split, SLICE.size, SLICE.pool)
    return {'base': found['base']['mIoU'], 'tpa': found['tpa']['mIoU']}


def complaint(host: str, found: Mapping[str, float], recorded: Mapping[str, float]) -> str | None:
    """What is wrong with a host's scores, or None.

    Args:
        host: Its name.
        found: ``base`` and ``tpa`` mIoU now.
        recorded: The same when they were recorded.
    """
    for row in ('base', 'tpa'):
        if abs(found[row] - recorded[row]) > TOLERANCE:
            return f'{HOSTS[host]}: {row} mIoU is {found[row]:.2f} and was {recorded[row]:.2f}.'
    if host in PAPER_HOSTS and found['tpa'] <= found['base']:
        return f'{HOSTS[host]}: TPA takes its mIoU from {found["base"]:.2f} to {found["tpa"]:.2f}.'
    return None


def weight_digests() -> dict[str, str]:
    """The first 16 digits of the SHA-256 of every committed weights file."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in _files()}


def _files() -> Iterable[Path]:
    return sorted(WEIGHTS.glob('*.safetensors'))


def record(numbers: Mapping[str, Mapping[str, float]]) -> None:
    """Writes the numbers that are to be kept. Args: numbers: ``base`` and ``tpa`` mIoU of each host."""
    content = {'slice': vars(SLICE), 'weights': weight_digests(), 'hosts': {**numbers}}
    write_json(NUMBERS, content)


def recorded() -> dict[str, dict[str, float]]:
    """The committed numbers of each host. Raises TPAError where they are of other weights or another slice."""
    if not NUMBERS.is_file():
        raise TPAError(f'{NUMBERS.name} not found. Write it with tools/miniature.py record.')
    content = json.loads(NUMBERS.read_text(encoding='utf-8'))
    changed = [name for name, digest in weight_digests().items() if content['weights'].get(name) != digest]
    if changed or content['slice'] != vars(SLICE):
        raise TPAError(
            f'{NUMBERS.name} was recorded with another {changed[0] if changed else "slice"}: look at what changed, '
            'then run tools/miniature.py record.'
        )
    return content['hosts']
