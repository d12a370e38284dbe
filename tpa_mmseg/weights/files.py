"""Files of weights: where they are, how they are read, checked and named."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from ..errors import TPAError
from .checkpoints import damage_named, read_checkpoint

SUFFIXES = ('.safetensors', '.pth', '.pt', '.bin')

# Under these keys training code keeps the weights, next to optimizer states and the like.
_CONTAINERS = ('state_dict', 'model', 'encoder')
_SAMPLE = 1000
_SCHEME = 'tpa_mmseg://'
_PACKAGE = Path(__file__).resolve().parents[1]


def weights_dir() -> Path:
    """Returns the folder for weights: ``$TPA_WEIGHTS``, or ``data/weights`` in the current directory."""
    return Path(os.environ.get('TPA_WEIGHTS') or Path('data') / 'weights')


def local_path(path: str | os.PathLike) -> Path:
    """Returns the path of a file that a config names; ``tpa_mmseg://`` is the folder of this package."""
    text = os.fspath(path)
    return _PACKAGE / text[len(_SCHEME) :] if text.startswith(_SCHEME) else Path(text).expanduser()


def find(name: str) -> Path | None:
    """Returns the weights of that name in the weights folder, in any of the known formats."""
    # A model name holds dots of its own, so a suffix is appended and never replaced.
    candidates = (weights_dir() / f'{name}{suffix}' for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def load_state_dict(path: str | os.PathLike) -> dict[str, Tensor]:
    """Reads the tensors of a safetensors or PyTorch file onto the CPU. No other objects are ever unpickled.

    Weights inside a training checkpoint (``{'state_dict': ...}``, ``{'model': ...}``) are found, and the prefix that
    data parallel training adds is taken off.
    """
    path = local_path(path)
    if not path.is_file():
        raise TPAError(f'Weights file not found: {path}. Check the path, or copy the file there.')
    with damage_named(path):
        content = safetensors.torch.load_file(path) if path.suffix == '.safetensors' else read_checkpoint(path)
    for key in _CONTAINERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not content or not all(_is_weight(*item) for item in content.items()):
        raise TPAError(f'{path} holds no state dict (names with tensors): use the file with the weights of the model.')
    prefix = 'module.' if all(name.startswith('module.') for name in content) else ''
    return {name[len(prefix) :]: tensor for name, tensor in content.items()}


def _is_weight(name: object, value: object) -> bool:
    """Returns whether this is a named tensor that a module can hold: nothing sparse, quantized, nested or absent."""
    plain = isinstance(value, Tensor) and value.layout == torch.strided and value.device.type == 'cpu'
    return plain and not value.is_quantized and not value.is_nested and isinstance(name, str)


def load_into(
    module: nn.Module,
    state: Mapping[str, Tensor],
    path: str | os.PathLike,
    unused: Sequence[str] = (),
    model: str | None = None,
) -> None:
    """Loads all of a module's tensors, or raises a sentence with the first ones that do not fit.

    Args:
        module: The module.
        state: Its tensors by name.
        path: Where they come from, for the sentence.
        unused: Beginnings of names that the file may hold without the module knowing them.
        model: What to call the module in the sentence, by default its class.
    """
    own = module.state_dict()
    misfits = [f'{name} is missing' for name in own if name not in state]
    misfits += [
        misfit(name, state[name], own[name]) for name in own if name in state and state[name].shape != own[name].shape
    ]
    misfits += [
        f'{name} is unknown to the model' for name in state if name not in own and not name.startswith(tuple(unused))
    ]
    if misfits:
        raise does_not_fit(path, model or type(module).__name__, misfits)
    module.load_state_dict({name: state[name] for name in own})


def misfit(name: str, found: Tensor, wanted: Tensor) -> str:
    """How to say that a tensor has another shape than the model's."""
    return f'{name} is {tuple(found.shape)} in the file and {tuple(wanted.shape)} in the model'


def does_not_fit(path: str | os.PathLike, model: str, misfits: Sequence[str]) -> TPAError:
    """The error for a file with the weights of another model."""
    more = f' and {len(misfits) - 3} more' if len(misfits) > 3 else ''
    return TPAError(
        f'The weights {path} do not fit {model} ({"; ".join(misfits[:3])}{more}): '
        'use the file of this model, or name the model of this file.'
    )


@torch.no_grad()
def digest(module: nn.Module) -> str:
    """A short name for a module's weights: equal weights give equal digests on every device.

    It reads at most about a thousand evenly spaced elements per tensor, so it is fast for large models, and any
    training step changes it.
    """
    sha = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        sha.update(f'{name} {tuple(tensor.shape)} {tensor.dtype}\n'.encode())
        flat = tensor.reshape(-1)
        sample = flat[:: max(1, math.ceil(flat.numel() / _SAMPLE))].cpu().contiguous()
        sha.update(sample.view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()
