"""Where results come from: everything that a reader needs to trust them, or to find out why theirs differ.

Both kinds of ``results.json`` carry it, that of a test and that of an experiment.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import torch
from mmengine.config import Config
from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import nn
from torch.utils.data import Dataset

from ..core import PrototypeBank
from ..datasets import Pool
from ..version import __version__
from ..weights.files import digest

#: How all results are validated: nothing is converted, nothing is ignored, nothing is infinite.
STRICT = ConfigDict(strict=True, extra='forbid', allow_inf_nan=False)
_PACKAGE = Path(__file__).resolve().parents[1]
_DISTRIBUTIONS = (
    *('torch', 'torchvision', 'mmengine', 'mmcv', 'mmcv-lite', 'mmsegmentation', 'onedl-mmengine', 'onedl-mmcv'),
    *('onedl-mmsegmentation', 'open_clip_torch', 'timm', 'numpy', 'pillow', 'opencv-python', 'safetensors'),
)
# Programs that are asked for a version answer at once or not at all.
_PATIENCE = 10


def _printable(text: str) -> str:
    """The text without what would command a terminal."""
    return re.sub(r'[\x00-\x1f\x7f-\x9f\u2028\u2029]', '\ufffd', text)


Text = Annotated[str, Field(max_length=4096), AfterValidator(_printable)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]


@dataclass(frozen=True, config=STRICT)
class Provenance:
    """The origin of a result.

    Args:
        commit: Of the checkout that the package is in; None for an installed package.
        dirty: Whether files of the checkout were changed.
        packages: Name -> version, with Python, CUDA and this package.
        device: Name of the GPU or CPU.
        driver: Version of the GPU's driver.
        precision: Part of the model -> the precision in which it runs; ``matmul``, that of float32 products.
        weights: Part of the model -> digest of its weights.
        banks: Setting of TPA -> digest of its bank. The order of summation changes last digits, and so the digest.
        data: Digest of names and sizes of the test images.
        config: The complete config.
        seeds: What was drawn at random -> its seed.
        seconds: Wall time until the results, building banks included.
        device_memory: Peak bytes of the GPU.
        host_memory: Peak bytes of the process.
    """

    commit: Text | None
    dirty: bool | None
    packages: dict[Text, Text]
    device: Text
    driver: Text | None
    precision: dict[Text, Text]
    weights: dict[Text, Text]
    banks: dict[Text, Text]
    data: Text | None
    config: Annotated[str, Field(max_length=1 << 20)]
    seeds: dict[Text, int | None]
    seconds: Seconds
    device_memory: Count | None
    host_memory: Count | None


def provenance(
    model: nn.Module,
    config: Config,
    dataset: Dataset,
    banks: Mapping[str, PrototypeBank],
    seeds: Mapping[str, int | None],
    seconds: float,
) -> Provenance:
    """Returns the origin of results that are about to be written.

    Args:
        model: What was tested.
        config: Its config. The work directory, a private path, is left out.
        dataset: The test set.
        banks: Name -> bank that was used.
        seeds: What was drawn -> its seed.
        seconds: How long everything took.
    """
    commit, dirty = _commit()
    device = _device_of(model)
    settings = Config({key: value for key, value in config.items() if key != 'work_dir'})
    return Provenance(
        commit=commit,
        dirty=dirty,
        packages=_packages(),
        device=device_name(device.type),
        driver=_output('nvidia-smi', '--query-gpu=driver_version', '--format=csv,noheader', '--id=0')
        if device.type == 'cuda'
        else None,
        precision=_precision(model),
        weights={name: digest(part)[:16] for name, part in _parts(model).items()},
        banks={name: _bank_digest(bank) for name, bank in banks.items()},
        data=_data_digest(dataset),
        config=settings.pretty_text,
        seeds=dict(seeds),
        seconds=round(seconds, 3),
        device_memory=torch.cuda.max_memory_allocated(device) if device.type == 'cuda' else None,
        host_memory=_peak_memory(),
    )


def device_name(device: str) -> str:
    """Returns the name of a GPU, or of the CPU."""
    if device.startswith('cuda'):
        return torch.cuda.get_device_name()
    return cpu_name() if device == 'cpu' else f'{platform.machine()} {device}'


def cpu_name() -> str:
    """Returns the name of the processor."""
    with suppress(OSError, StopIteration):
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        return next(line.split(':', 1)[1].strip() for line in lines if line.startswith('model name'))
    return platform.processor() or platform.machine()


def _output(*command: str) -> str | None:
    """What a program prints; None where it is missing or fails."""
    with suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
        return answer.stdout.strip() or None if answer.returncode == 0 else None
    return None


def _commit() -> tuple[str | None, bool | None]:
    """The commit of the package's own checkout, not of a repository that an environment happens to be in."""
    found = None
    if (_PACKAGE.parent / '.git').exists():
        command = 'describe', '--always', '--dirty', '--abbrev=40', '--exclude=*'
        found = _output('git', '-C', str(_PACKAGE.parent), *command)
    return (None, None) if found is None else (found.removesuffix('-dirty'), found.endswith('-dirty'))


def _packages() -> dict[str, str]:
    found = {'python': platform.python_version(), 'cuda': torch.version.cuda or 'none', 'tpa_mmseg': __version__}
    for name in _DISTRIBUTIONS:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _parts(model: nn.Module) -> dict[str, nn.Module]:
    """Host and encoders of a TPASegmentor; any other model as a whole."""
    return {'host': model.host, **model.encoders} if hasattr(model, 'encoders') else {'model': model}


def _device_of(model: nn.Module) -> torch.device:
    return next((tensor.device for tensor in model.parameters()), torch.device('cpu'))


def _precision(model: nn.Module) -> dict[str, str]:
    found = {name: getattr(module, 'precision', None) for name, module in model.named_modules()}
    own = {name or 'model': value for name, value in found.items() if isinstance(value, str)}
    return {**own, 'matmul': torch.get_float32_matmul_precision()}


def _bank_digest(bank: PrototypeBank) -> str:
    sha = hashlib.sha256()
    for tensor in (bank.sums, bank.counts):
        sha.update(tensor.cpu().numpy().tobytes())
    return sha.hexdigest()[:16]


def _data_digest(dataset: Dataset) -> str | None:
    """Of a list of files; None for a dataset that has none."""
    if not hasattr(dataset, 'get_data_info'):
        return None
    indices: Sequence[int] = range(len(dataset))
    return Pool(dataset, indices, getattr(dataset, 'data_root', None)).fingerprint()['content']


def _peak_memory() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    # macOS counts bytes, others kilobytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == 'darwin' else 1024)
