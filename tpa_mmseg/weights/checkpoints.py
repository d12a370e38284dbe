"""Reading PyTorch checkpoints from strangers: tensors and plain data, never code."""

from __future__ import annotations

import os
import pickle
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from mmengine.runner import CheckpointLoader
from packaging.version import Version

from ..errors import TPAError

#: Older ones run code in spite of ``weights_only`` (CVE-2025-32434), or corrupt memory (CVE-2026-24747).
OLDEST_SAFE_TORCH = '2.10'


class _Inert(dict):
    """Stands for every foreign object of a checkpoint. It keeps the content of a dict and does nothing else."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*(content for content in args[:1] if type(content) is dict))

    def _ignore(self, *args: object) -> None:
        pass

    __setstate__ = append = extend = _ignore


def read_checkpoint(path: str | os.PathLike, map_location: object = 'cpu') -> object:
    """Returns the content of a .pth, .pt or .bin file. Objects that are not plain data become inert stand-ins.

    Raises TPAError if the file is damaged or a program, or if PyTorch is too old to read such files safely.
    """
    if Version(torch.__version__).release < Version(OLDEST_SAFE_TORCH).release:
        raise TPAError(
            f'{path} is a pickle file, which PyTorch {torch.__version__} cannot read safely: update PyTorch to '
            f'{OLDEST_SAFE_TORCH} or later, or save the weights as a .safetensors file on a machine you trust.'
        )
    load = partial(torch.load, path, map_location=map_location, weights_only=True)
    with damage_named(path):
        _check_archive(path)
        try:
            return load()
        except pickle.UnpicklingError:
            # MMEngine keeps its log buffers in a checkpoint, other scripts their arguments. None of that is imported.
            foreign = torch.serialization.get_unsafe_globals_in_checkpoint(path)
            with torch.serialization.safe_globals([(_Inert, name) for name in foreign]):
                return load()


@contextmanager
def damage_named(path: str | os.PathLike) -> Iterator[None]:
    """Turns whatever a damaged file of weights raises into TPAError."""
    try:
        yield
    except TPAError:
        raise
    except Exception as error:  # almost any
        raise TPAError(
            f'{path} cannot be read as weights ({first_sentence(error)}): it is damaged or holds more than tensors; '
            'download it again, or save its state dict alone as a .safetensors file.'
        ) from error


def first_sentence(error: BaseException) -> str:
    """Returns the reason of an error in brief: what follows in PyTorch's own messages is advice to trust the file."""
    sentence = re.split(r'\.\s|\n', str(error).strip())[0]
    return sentence[:160] or type(error).__name__


def _check_archive(path: str | os.PathLike) -> None:
    """Refuses programs, as OpenAI published its models, and files that PyTorch did not write."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        if any('/code/' in name for name in archive.namelist()):
            raise TPAError(
                f'{path} is a TorchScript archive, which is a program and is not run: download the weights as '
                'safetensors instead (tpa weights download CONFIG), or set clip.pretrained to their tag.'
            )
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError('it is compressed and may unfold to any size')


@CheckpointLoader.register_scheme(prefixes='', force=True)
def load_from_local(filename: str, map_location: object = None) -> object:
    """MMEngine's loader of local files, by :func:`read_checkpoint`."""
    path = Path(filename).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f'{path} can not be found.')
    return read_checkpoint(path, map_location)
