"""What pyproject.toml and constraints.txt say."""

from __future__ import annotations

import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text(encoding='utf-8'))


def requirements(extra: str | None = None) -> list[str]:
    """Returns the requirements of the package, or those of an extra."""
    project = PROJECT['project']
    return project['dependencies'] if extra is None else project['optional-dependencies'][extra]


def pins(python: str) -> dict[str, Requirement]:
    """Returns the lines of constraints.txt that hold for a version of Python, by name."""
    environment = {'python_version': python, 'python_full_version': f'{python}.1'}
    lines = [line.rstrip(' \\') for line in (ROOT / 'constraints.txt').read_text().splitlines() if line[:1].isalnum()]
    held = [pin for pin in map(Requirement, lines) if pin.marker is None or pin.marker.evaluate(environment)]
    assert len({canonicalize_name(pin.name) for pin in held}) == len(held), 'a distribution is pinned twice'
    return {canonicalize_name(pin.name): pin for pin in held}
