"""Where the time of a GPU goes: the stages of an image, what they start and wait for, and images per second from disk.

Networks have the real sizes and random weights, and images are noise: neither changes how long anything takes. On a CPU
the same runs as a rehearsal.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.engine.timing import CLIP, StageTimer, run_stages
from tpa_mmseg.segmentors import TPASegmentor

from .host_cases import CLIP as CLIP_B16
from .host_cases import HOSTS, TINY_CLIP, VOCABULARIES, host_config, random_encoder, tiny_encoder
from .launches import LaunchCounter
from .precision import set_precision

#: A host whose own encoder serves TPA too, as in the paper's cost table.
REUSED = 'ProxyCLIP, HostFeatures'
GPU_HOSTS = (*HOSTS, REUSED)
_MB = 1 << 20
_PREPROCESSOR = {
    'type': 'TPADataPreProcessor',
    'mean': [122.771, 116.746, 104.094],
    'std': [68.501, 66.632, 70.323],
    'bgr_to_rgb': True,
}


@dataclass(frozen=True)
class GPUOptions:
    """How to measure.

    Args:
        device: ``'cuda'`` or ``'cpu'``.
        images: Images that are timed, after :attr:`warm_up` others.
        warm_up: Images that go first: kernels are chosen and compiled with them.
        batch_size: Images per step from disk to labels.
        workers: Processes that read images.
        compile: Whether networks run by torch.compile.
        tiny: Tiny networks and images, for a test.
    """

    device: str
    images: int = 30
    warm_up: int = 5
    batch_size: int = 1
    workers: int = 4
    compile: bool = False
    tiny: bool = False


def measure_host(name: str, precision: str, options: GPUOptions) -> dict:
    """Measures a host with TPA.

    Args:
        name: One of :data:`GPU_HOSTS`.
        precision: Of all networks, e.g. ``'auto'``.
        options: How to measure.

    Returns:
        ``used`` precisions; ``stages``: milliseconds (median), launches and waits of each; ``peak_mb`` beyond the
        weights, ``weights_mb``; ``images_per_second`` from disk to labels.
    """
    model = _model(name, precision, options)
    with tempfile.TemporaryDirectory() as folder:
        dataset = _dataset(Path(folder), options)
        bank, stages = _stages(model, dataset, options)
        model.set_bank(bank)
        weights = sum(tensor.nbytes for tensor in model.state_dict().values())
        rate, peak = _from_disk(model, dataset, options)
    return {
        'host': name,
        'precision': precision,
        'used': {'clip': model.host.tower.precision, 'encoder': model.encoder.precision},
        'stages': stages,
        'weights_mb': weights / _MB,
        'peak_mb': None if peak is None else peak / _MB,
        'images_per_second': rate,
    }


def _model(name: str, precision: str, options: GPUOptions) -> TPASegmentor:
    torch.manual_seed(0)
    encoder = tiny_encoder(14) if options.tiny else random_encoder('dinov2')
    host = host_config('ProxyCLIP' if name == REUSED else name, VOCABULARIES[0], options.tiny)
    # The parts of the table of hosts are shared: what is changed here is a copy.
    host = {key: dict(value) if isinstance(value, dict) else value for key, value in host.items()}
    config = {'host': host, 'encoder': encoder}
    set_precision(config, precision)
    for part in (host['clip'], host.get('proxy'), host.get('sam'), encoder):
        if part is not None and options.compile:
            part['compile'] = True
    if name == REUSED:
        config['encoder'] = {'type': 'HostFeatures'}
    model = TPASegmentor(**config, data_preprocessor=_PREPROCESSOR)
    clip = {**(TINY_CLIP if options.tiny else CLIP_B16), 'precision': precision, 'compile': options.compile}
    model.encoders[CLIP] = MODELS.build({'type': 'CLIPEncoder', 'clip': clip})
    return model.to(options.device)


def _dataset(folder: Path, options: GPUOptions) -> Dataset:
    """JPEG files of the size of Pascal VOC's, read and resized as usual."""
    init_default_scope('mmseg')
    generator = np.random.default_rng(0)
    size, short = ((70, 105), 64) if options.tiny else ((375, 500), 336)
    for number in range(options.warm_up + options.images):
        noise = Image.fromarray(generator.integers(0, 256, (12, 16, 3), np.uint8))
        noise.resize(size[::-1], Image.Resampling.BICUBIC).save(folder / f'{number:04}.jpg', quality=90)
    return DATASETS.build(
        {
            'type': 'BaseSegDataset',
            'data_prefix': {'img_path': str(folder)},
            'metainfo': {'classes': [str(number) for number in range(VOCABULARIES[0].classes)]},
            'pipeline': [
                {'type': 'LoadImageFromFile'},
                {'type': 'Resize', 'scale': (2048, short), 'keep_ratio': True},
                {'type': 'PackSegInputs'},
            ],
            'test_mode': True,
        }
    )


def _stages(model: TPASegmentor, dataset: Dataset, options: GPUOptions) -> tuple[PrototypeBank, dict[str, dict]]:
    """Milliseconds of each stage, and what one image starts and waits for in it."""
    bank, times = model.new_bank(), defaultdict(list)
    for number in range(options.warm_up + options.images):
        timer = StageTimer(options.device)
        run_stages(model, pseudo_collate([dataset[number]]), bank, timer)
        if number >= options.warm_up:
            for stage, seconds in timer.seconds.items():
                times[stage].append(1000 * seconds)
    counter = LaunchCounter(options.device)
    run_stages(model, pseudo_collate([dataset[0]]), bank, counter)
    return bank, {
        stage: {'milliseconds': statistics.median(found), **counter.counts[stage]} for stage, found in times.items()
    }


@torch.no_grad()
def _from_disk(model: nn.Module, dataset: Dataset, options: GPUOptions) -> tuple[float, int | None]:
    """Images per second from files to the labels of host and TPA, and the peak of the GPU's memory in bytes."""
    on_gpu = options.device == 'cuda'
    loader = DataLoader(
        dataset, options.batch_size, num_workers=options.workers, collate_fn=pseudo_collate, pin_memory=on_gpu
    )
    wait: Callable[[], None] = torch.cuda.synchronize if on_gpu else lambda: None
    seen, started = 0, None
    weights = 0
    for data in loader:
        if started is None and seen >= options.warm_up:
            wait()
            if on_gpu:
                torch.cuda.reset_peak_memory_stats()
                weights = torch.cuda.memory_allocated()
            first, started = seen, time.perf_counter()
        model.test_step(data)
        seen += len(data['inputs'])
    wait()
    rate = (seen - first) / (time.perf_counter() - started)
    return rate, torch.cuda.max_memory_allocated() - weights if on_gpu else None


def gpu_machine(device: str) -> dict:
    """What is measured: the GPU and the libraries that drive it."""
    if device != 'cuda':
        return {'gpu': None, 'cuda': None}
    properties = torch.cuda.get_device_properties(0)
    return {
        'gpu': properties.name,
        'gpus': torch.cuda.device_count(),
        'capability': f'{properties.major}.{properties.minor}',
        'memory_mb': properties.total_memory / _MB,
        'cuda': torch.version.cuda,
        'cudnn': torch.backends.cudnn.version(),
    }
