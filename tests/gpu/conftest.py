"""Everything in this folder needs CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of this folder, and skips them without a GPU."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker('gpu')
            if not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason='needs a CUDA GPU'))
