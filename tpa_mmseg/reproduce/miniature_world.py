"""The miniature world: the same experiments on painted scenes with tiny networks, on a CPU."""

from __future__ import annotations

from pathlib import Path

from mmengine.config import Config, ConfigDict

from ..sam.model import SAMModel
from .runs import Run
from .world import CONFIGS, World

_FOLDER = CONFIGS / 'miniature'
_BENCHMARKS = {'miniature': 'Miniature', 'background': 'Miniature, background'}
_HOSTS = {
    'clip': 'CLIP',
    'maskclip': 'MaskCLIP',
    'sclip': 'SCLIP',
    'clearclip': 'ClearCLIP',
    'naclip': 'NACLIP',
    'gem': 'GEM',
    'proxyclip': 'ProxyCLIP',
    'trident': 'Trident',
}
_BACKBONES = {'mini-b8': 'Mini-B/8', 'mini-l7': 'Mini-L/7'}
_ENCODERS = {'sam': 'SAM', 'untrained': 'Untrained', 'trained': 'Trained'}


def miniature_world() -> World:
    """Describes the world by what its configs have."""
    networks = Config.fromfile(CONFIGS / '_base_' / 'miniature.py').miniature
    encoders = _encoders(networks)
    rows = [(host, backbone) for backbone in _BACKBONES for host in _HOSTS]
    return World(
        name='miniature',
        hosts=_HOSTS,
        backbones=_BACKBONES,
        benchmarks=_BENCHMARKS,
        images=dict.fromkeys(_BENCHMARKS, 300),
        rows=tuple(row for row in rows if _file(*row, 'miniature').is_file()),
        proxies={'sam': 'SAM', 'untrained': 'Untrained'},
        proxy_backbones=('mini-b8',),
        encoders=encoders,
        encoder_names=_ENCODERS,
        ablation_host=('naclip', 'mini-b8'),
        ablation_benchmarks=('miniature',),
        growth_host=('trident', 'mini-b8'),
        compositions=(
            ('proxyclip', 'mini-b8', 'standard', None),
            ('proxyclip', 'mini-b8', 'standard', 'fsa'),
            ('naclip', 'mini-l7', 'standard', None),
            ('naclip', 'mini-l7', 'standard', 'mlmp'),
        ),
        cost_rows=tuple(('proxyclip', backbone) for backbone in _BACKBONES),
        config=_config,
        has=lambda run: _config(run).is_file(),
        adjust=lambda run, cfg: _adjust(run, cfg, encoders),
        # About what one core of a server takes.
        seconds_per_image=0.25,
    )


def _file(host: str, backbone: str, benchmark: str, plugin: str | None = None) -> Path:
    name = f'{host}_{backbone}{"_background" if benchmark == "background" else ""}.py'
    return _FOLDER / (name if plugin is None else f'{plugin}_{name}')


def _config(run: Run) -> Path:
    return _file(run.host, run.backbone, run.benchmark, run.plugin)


def _encoders(networks: ConfigDict) -> dict[str, dict]:
    """The image encoder of the tiny SAM, the world's encoder, and the same without its training."""
    trained = {key: value for key, value in networks.encoder.items() if key != '_delete_'}
    sam = SAMModel.of({key: value for key, value in networks.sam.model.items()})
    model = {
        'type': 'VisionTransformerSAM',
        'img_size': sam.image_size,
        'patch_size': sam.patch,
        'embed_dim': sam.embed_dim,
        'depth': sam.depth,
        'num_heads': sam.num_heads,
        'neck_chans': sam.prompt_dim,
        'global_attn_indexes': sam.global_attn_indexes,
        'window_size': sam.window_size,
        'use_rel_pos': True,
    }
    return {
        'sam': {'type': 'TimmEncoder', 'model': model, 'pretrained': networks.sam.checkpoint},
        'untrained': {**trained, 'pretrained': False},
        'trained': trained,
    }


def _adjust(run: Run, cfg: Config, encoders: dict[str, dict]) -> None:
    """Puts another proxy into ProxyCLIP, for which the miniature world has no config files."""
    if run.proxy is not None:
        cfg.model.host.proxy = ConfigDict(encoders[run.proxy])
