"""The precision that frozen networks run in."""

from __future__ import annotations

import torch

PRECISIONS = {'float32': torch.float32, 'float16': torch.float16, 'bfloat16': torch.bfloat16}


def autocast_to(device: torch.device, precision: str) -> torch.autocast:
    """A context that runs networks in ``precision``. For float32 it switches off any autocast around the caller."""
    dtype = PRECISIONS[precision]
    return torch.autocast(device.type, dtype, enabled=dtype != torch.float32)
