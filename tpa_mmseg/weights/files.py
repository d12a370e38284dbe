"""Where weights lie, how they are read and checked, and what to say when they cannot be downloaded."""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import re
import socket
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import huggingface_hub.constants
import safetensors.torch
import torch
from torch import Tensor, nn

from ..errors import TPAError

SUFFIXES = ('.safetensors', '.pth', '.pt', '.bin')

# Under these keys training code keeps the weights, next to optimizer states and the like.
_CONTAINERS = ('state_dict', 'model')
_SAMPLE = 1000
_CONNECT_SECONDS = 3.0


def weights_dir() -> Path:
    """The folder for weights that a user brings: ``$TPA_WEIGHTS``, or ``data/weights`` in the current directory."""
    return Path(os.environ.get('TPA_WEIGHTS') or Path('data') / 'weights')


def find(name: str) -> Path | None:
    """The weights of that name in the weights folder, in any of the known formats."""
    # A model name holds dots of its own, so a suffix is appended and never replaced.
    candidates = (weights_dir() / f'{name}{suffix}' for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def load_state_dict(path: str | os.PathLike) -> dict[str, Tensor]:
    """Reads the tensors of a safetensors or PyTorch file onto the CPU. No other objects are ever unpickled.

    Weights inside a training checkpoint (``{'state_dict': ...}``, ``{'model': ...}``) are found, and the prefix that
    data parallel training adds is taken off.
    """
    path = Path(path)
    if not path.is_file():
        raise TPAError(f'There is no weights file {path}: correct the path, or bring the file.')
    try:
        content = safetensors.torch.load_file(path) if path.suffix == '.safetensors' else _torch_load(path)
    except Exception as error:  # a damaged file can raise almost anything
        raise TPAError(
            f'{path} cannot be read as weights ({_reason(error)}): it is damaged or holds more than tensors; '
            'bring it again, or save its state dict alone as a .safetensors file.'
        ) from error
    for key in _CONTAINERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not content or not all(isinstance(v, Tensor) for v in content.values()):
        raise TPAError(f'{path} holds no state dict (names with tensors): bring the weights of the model.')
    prefix = 'module.' if all(name.startswith('module.') for name in content) else ''
    return {name[len(prefix) :]: tensor for name, tensor in content.items()}


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
        'bring the file of this model, or name the model of this file.'
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


@contextmanager
def explain_download(model: str, files: str, target: str | os.PathLike) -> Iterator[None]:
    """Wraps a download of weights: where it fails, a sentence says which file to bring and where to put it.

    Without a connection the hub's client would repeat its requests for most of a minute. Inside this context it goes
    to its own cache at once.

    Args:
        model: What the weights are for.
        files: What to bring, such as ``model.safetensors of the hub repository timm/...``.
        target: Where to put it.
    """
    constants = huggingface_hub.constants
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not _hub_answers()
    reason = 'no connection to the hub' if constants.HF_HUB_OFFLINE else None
    try:
        yield
    except TPAError:
        raise
    except Exception as error:  # each of the clients beneath timm and open_clip has exceptions of its own
        raise TPAError(
            f'The weights of {model} are not on this machine and cannot be downloaded '
            f'({reason or _reason(error)}): bring {files} and save it as {target} '
            '(TPA_WEIGHTS names another folder).'
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = before


def _hub_answers() -> bool:
    """Whether the hub accepts a connection."""
    if {'https', 'all'} & urllib.request.getproxies().keys():
        return True  # only a request through the proxy can tell
    hub = urlsplit(huggingface_hub.constants.ENDPOINT)
    try:
        socket.create_connection((hub.hostname, hub.port or 443), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


class _Shell:
    """Stands for every object in a file that is not a tensor: it takes anything and does nothing."""

    def __init__(self, *args, **kwargs) -> None:
        pass

    def __setstate__(self, state) -> None:
        pass

    def __setitem__(self, key, value) -> None:
        pass


def _torch_load(path: Path) -> object:
    """What a PyTorch file holds. Objects that training left next to the weights become empty shells."""
    load = partial(torch.load, path, map_location='cpu', weights_only=True)
    try:
        return load()
    except pickle.UnpicklingError:
        # MMEngine keeps its log buffers in a checkpoint, other scripts their arguments. None of that code is imported.
        others = torch.serialization.get_unsafe_globals_in_checkpoint(path)
        with torch.serialization.safe_globals([(_Shell, name) for name in others]):
            return load()


def _reason(error: BaseException) -> str:
    """The first sentence of an error: what follows in PyTorch's is advice to trust the file."""
    sentence = re.split(r'\.\s|\n', str(error).strip())[0]
    return sentence[:160] or type(error).__name__
