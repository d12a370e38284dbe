"""The precision of frozen networks."""

from __future__ import annotations

import torch

PRECISIONS = {'float32': torch.float32, 'float16': torch.float16, 'bfloat16': torch.bfloat16}
#: What a config may say: a type, or the one that suits the device.
PRECISION_OPTIONS = ('auto', *PRECISIONS)


def used_precision(precision: str, device: torch.device, half: str) -> str:
    """Returns the type in which a network computes, a key of :data:`PRECISIONS`.

    Args:
        precision: One of :data:`PRECISION_OPTIONS`. ``'auto'`` is ``half`` on CUDA, and float32 on any other device.
        device: Where the network is.
        half: The half precision that suits the network. ``'bfloat16'`` becomes float16 on GPUs that only emulate it.
    """
    if precision != 'auto':
        return precision
    if device.type != 'cuda':
        return 'float32'
    # Ampere (8.0) is the first with bfloat16 in its tensor cores; before it PyTorch computes in float32 and rounds.
    return 'float16' if half == 'bfloat16' and torch.cuda.get_device_capability(device) < (8, 0) else half


def autocast_to(device: torch.device, precision: str) -> torch.autocast:
    """Returns a context that runs networks on a device in a precision, a key of :data:`PRECISIONS`.

    ``'float32'`` means float32: an autocast around the caller is switched off.
    """
    if precision == 'float32':
        return torch.autocast(device.type, enabled=False)
    return torch.autocast(device.type, PRECISIONS[precision])
