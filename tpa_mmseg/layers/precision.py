"""The precision of frozen networks."""

from __future__ import annotations

import torch

PRECISIONS = {'float32': torch.float32, 'float16': torch.float16, 'bfloat16': torch.bfloat16}


def autocast_to(device: torch.device, precision: str) -> torch.autocast:
    """Returns a context that runs networks on a device in a precision.

    ``'float32'`` means float32: an autocast around the caller is switched off.
    """
    if precision == 'float32':
        return torch.autocast(device.type, enabled=False)
    return torch.autocast(device.type, PRECISIONS[precision])
