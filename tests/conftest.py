"""What every test needs: the package registered before mmseg is imported, one thread, a fixed seed."""

from __future__ import annotations

import pytest
import torch

import tpa_mmseg  # noqa: F401  (installs the compatibility lines before any test imports mmseg)


@pytest.fixture(scope='session', autouse=True)
def _one_thread() -> None:
    """The tensors of the tests are tiny: more threads only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    """A test that draws numbers draws the same ones alone and among others."""
    torch.manual_seed(0)
