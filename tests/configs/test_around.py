"""Configs with MLMP or a baseline around a host: the host's own config, one layer more, and nothing else."""

from __future__ import annotations

import pytest
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS

from tests.configs import settings
from tests.configs.test_configs import AROUND, parse
from tests.helpers.tiny_configs import CONFIGS, innermost, load, shrink
from tests.helpers.world import ROOT
from tpa_mmseg.plugins.mlmp import TEMPLATES

init_default_scope('mmseg')

MINIATURE = sorted(
    path.stem
    for kind in ('mlmp', 't3a', 'lame', 'tent')
    for path in (CONFIGS / 'miniature').glob(f'*-{kind}*_mini-*.py')
)


def without_layer(name: str) -> Config:
    """The config of the host alone."""
    host, variant, backbone, benchmark = parse(name)
    protocol = '-224' if variant.startswith('224') else ''
    return load(f'{host}{protocol}_{backbone}_{benchmark}')


@pytest.mark.parametrize('name', AROUND)
def test_config_is_that_of_the_host_with_a_layer_around_it(name: str) -> None:
    host, variant, _, _ = parse(name)
    cfg, alone = load(name), without_layer(name)
    kind, options, _ = settings.AROUND[host, variant]
    assert cfg.model.host == {'type': kind, 'host': alone.model.host, **options}
    assert {**cfg.model, 'host': None} == {**alone.model, 'host': None}
    assert cfg.test_dataloader.dataset == alone.test_dataloader.dataset
    assert (cfg.test_evaluator, cfg.custom_hooks) == (alone.test_evaluator, alone.custom_hooks)
    assert len((CONFIGS / host / f'{name}.py').read_text(encoding='utf-8').splitlines()) <= 5


@pytest.mark.parametrize('name', [name for name in AROUND if '-224-' in name])
def test_mlmp_adapts_to_two_images_together(name: str) -> None:
    loader = load(name).test_dataloader
    assert loader.batch_size == 2 and loader.sampler == {'type': 'WholeBatchSampler', 'batch_size': 2}


@pytest.mark.parametrize('name', [name for name in AROUND if name.endswith('_voc20')])
def test_model_is_built_around_the_host(name: str) -> None:
    host, variant, _, _ = parse(name)
    model = MODELS.build(shrink(load(name)).model)
    layer = model.host
    assert type(layer).__name__ == settings.AROUND[host, variant][0] and type(layer.host).__name__ == 'NACLIP'
    assert layer.num_classes == model.num_classes == 20
    if variant.startswith('224'):
        found = (layer.steps, layer.lr, layer.cls_weight, layer.prompt_integration, layer.host.logit_scale)
        assert found == (0 if variant == '224-mlmp0' else 10, 1e-3, 1.0, 'loss', 100)
    else:
        assert layer.scope == 'image'


def test_prompts_of_mlmp_are_those_of_the_original() -> None:
    assert TEMPLATES == (
        'itap of a {}',
        'a bad photo of the {}.',
        'a origami {}.',
        'a photo of the large {}.',
        'a {} in a video game.',
        'art of the {}.',
        'a photo of the small {}.',
    )


@pytest.mark.parametrize('name', MINIATURE)
def test_config_of_the_miniature_world_puts_a_layer_around_its_host(name: str) -> None:
    cfg = Config.fromfile(ROOT / f'configs/miniature/{name}.py')
    model, _, backbone = name.partition('_')
    host, _, layer = model.partition('-')
    alone = Config.fromfile(ROOT / f'configs/miniature/{host}_{backbone}.py')
    assert innermost(cfg.model.host) == cfg.model.host.host == alone.model.host
    assert cfg.model.host.type == layer.partition('-')[0].removesuffix('0').upper()
    assert (cfg.model.host.get('scope') == 'stream') == layer.endswith('-stream')
