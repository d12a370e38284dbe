"""Every config: what it says, against the settings of the original implementations, and that its model is built."""

from __future__ import annotations

import itertools
import json

import open_clip
import pytest
import timm.models
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS

from tests.configs import settings
from tests.helpers.tiny_configs import CONFIGS, class_names, load, shrink
from tpa_mmseg.catalog import paper
from tpa_mmseg.hosts import Host

init_default_scope('mmseg')
pytestmark = pytest.mark.filterwarnings("ignore:.*'bed' is a name of classes 0 and 60")

BENCHMARKS = tuple(settings.DATASETS)
MAIN = [f'{host}_{b}_{name}' for host, bs in settings.ROWS.items() for b in bs for name in BENCHMARKS]
PROXIES = [
    f'proxyclip-{proxy}_{backbone}_{name}'
    for proxy, backbone, name in itertools.product(('sam', 'mae', 'dinov2'), settings.BACKBONES, BENCHMARKS)
]
PROTOCOL = [f'naclip-224_vit-l14_{name}' for name in BENCHMARKS if name != 'ade20k']
PLUGINS = [
    f'{host}-{plugin}_{backbone}_{name}'
    for (host, plugin), backbones in settings.PLUGINS.items()
    for backbone, name in itertools.product(backbones, BENCHMARKS)
]
# FSA in ProxyCLIP with other encoders: the config of both, joined.
PROXIES_FSA = [name.replace('_', '-fsa_', 1) for name in PROXIES]
ALL = MAIN + PROXIES + PROTOCOL + PLUGINS
# What goes around a host has a test of its own, test_around.py.
AROUND = [
    f'{host}-{variant}_{backbone}_{name}'
    for (host, variant), (_, _, backbones) in settings.AROUND.items()
    for backbone, name in itertools.product(backbones, BENCHMARKS)
    if not (variant.startswith('224') and name == 'ade20k')
]


def parse(name: str) -> tuple[str, str, str, str]:
    """Host, variant, backbone and benchmark of a config."""
    model, backbone, benchmark = name.split('_', 2)
    host, _, variant = model.partition('-')
    return host, variant, backbone, benchmark


def row_of(name: str) -> str:
    """Everything but the benchmark."""
    return '_'.join(name.split('_', 2)[:2])


def test_every_row_of_the_paper_has_its_configs() -> None:
    there = {path.stem for host in settings.ROWS for path in (CONFIGS / host).glob('*.py')}
    assert there == set(ALL) | set(AROUND) | set(PROXIES_FSA)
    assert (len(MAIN), len(PROXIES), len(PROTOCOL), len(PLUGINS)) == (88, 72, 7, 80)
    tables = paper.tables()['tables']
    in_main, in_vfm = ({row['key'].removesuffix('+tpa') for row in tables[name]} for name in ('main', 'vfm'))
    # MLMP is in the main table with NACLIP's own protocol, which nobody published the settings of.
    assert in_main - {'naclip-mlmp_vit-l14'} == {row_of(name) for name in MAIN + PLUGINS}
    assert in_vfm == {row_of(name) for name in PROXIES + PROXIES_FSA}
    (mlmp,) = (row['scores'] for row in tables['composition'] if row['key'] == 'naclip-224_vit-l14+tpa')
    assert {name for name, score in mlmp.items() if score} == {parse(name)[3] for name in PROTOCOL}


@pytest.mark.parametrize('name', ALL)
def test_config_says_what_the_original_does(name: str) -> None:
    host, variant, backbone, benchmark = parse(name)
    cfg = load(name)
    check_models(cfg, host, variant, backbone)
    check_data(cfg, benchmark, variant)
    expected = settings.expected(host, variant, backbone, benchmark)
    check_pipeline(cfg, expected)
    names = class_names(cfg.model.host)
    assert (len(names.queries), len(names.names)) == (expected['queries'], settings.DATASETS[benchmark][-1])
    if host == 'trident':
        pytest.importorskip('segment_anything')  # an extra of the package
    check_host(built(cfg), host, expected)


def check_models(cfg: Config, host: str, variant: str, backbone: str) -> None:
    """The models that a config names."""
    clip = cfg.model.host.clip
    assert (clip.model, clip.pretrained) == settings.BACKBONES[backbone]
    if host == 'proxyclip':
        proxy = settings.PROXIES.get(variant, settings.PROXIES[''])
        assert cfg.model.host.proxy == {'type': 'TimmEncoder', 'model': proxy}
    if host == 'trident':
        assert cfg.model.host.proxy == {'type': 'TimmEncoder', 'model': 'vit_base_patch16_224.dino'}
        assert cfg.model.host.sam == {'model': 'vit_b'}
    assert cfg.model.encoder == {'type': 'TimmEncoder', 'model': 'vit_base_patch14_dinov2.lvd142m'}
    assert list(cfg.model.host.get('templates', [])) == (['a photo of a {}'] if variant == '224' else [])


def check_data(cfg: Config, benchmark: str, variant: str) -> None:
    """The dataset, its files and how it is read."""
    kind, folder, images, labels, split, classes = settings.DATASETS[benchmark]
    loader = cfg.test_dataloader
    assert (loader.batch_size, loader.num_workers, loader.sampler.shuffle) == (1, 4, False)
    assert loader.dataset.type == kind
    assert loader.dataset.data_root == f'data/{folder}'
    assert loader.dataset.data_prefix == {'img_path': images, 'seg_map_path': labels}
    assert loader.dataset.get('ann_file') == (split and f'ImageSets/{split}/val.txt')
    assert len(DATASETS.get(kind).METAINFO['classes']) == classes
    # mmseg.apis reads the one, the Runner the other.
    assert cfg.test_pipeline == loader.dataset.pipeline


def check_pipeline(cfg: Config, expected: dict) -> None:
    """Labels keep their size, or have that of the image where the protocol says so."""
    steps = [step.type for step in cfg.test_pipeline]
    resize = next(step for step in cfg.test_pipeline if step.type == 'Resize')
    assert (tuple(resize.scale), resize.keep_ratio) == (expected['scale'], expected['keep_ratio'])
    if expected['keep_ratio']:
        assert steps == ['LoadImageFromFile', 'Resize', 'LoadAnnotations', 'PackSegInputs']
    else:
        assert steps == ['LoadImageFromFile', 'LoadAnnotations', 'Resize', 'ScoreAtThisSize', 'PackSegInputs']


#: Hosts that were built: configs that differ in their models and class names alone share one.
KINDS: dict[str, Host] = {}


def built(cfg: Config) -> Host:
    """The host of a config with tiny models, or one that was built with the same settings before."""
    options = {key: value for key, value in cfg.model.host.items() if key not in ('clip', 'proxy', 'class_names')}
    kind = json.dumps(options, sort_keys=True)
    if kind not in KINDS:
        KINDS[kind] = MODELS.build(shrink(cfg).model).host
    return KINDS[kind]


def check_host(host: Host, name: str, expected: dict) -> None:
    """What the host that was built really does, its defaults included."""
    assert type(host).__name__.lower() == name
    assert len(host.text_features) == len(host.query_to_class) and host.num_classes == 1 + max(host.query_to_class)
    found = {**host.settings(), **host.settings()['sliding'], 'prob_thd': host.rule.prob_thd}
    found |= {'area_thd': host.rule.area_thd}
    if name == 'trident':
        found |= host.refinement.as_dict()
    padding = settings.PADDING[name]
    assert found['pad_to'] == (host.tower.patch_size if padding == 'patch' else padding)
    # Pipeline and names were checked before; the stride means nothing where the image is taken as a whole.
    elsewhere = {'scale', 'keep_ratio', 'queries', *(['stride'] if expected['crop'] == settings.WHOLE else [])}
    wanted = {key: value for key, value in expected.items() if key not in elsewhere}
    assert {key: found[key] for key in wanted} == wanted


def test_tpa_has_one_set_of_options_for_all() -> None:
    for name in ('sclip_vit-b16_voc21', 'proxyclip_vit-h14_cityscapes', 'naclip-224_vit-l14_voc20'):
        cfg = load(name)
        assert cfg.custom_hooks == [{'type': 'PrototypeBankHook', 'pool': {'size': None, 'seed': 0}}]
        assert cfg.test_evaluator == {'type': 'HostTPAMetric'}
        preprocessor = cfg.model.data_preprocessor
        assert preprocessor.type == 'TPADataPreProcessor' and preprocessor.bgr_to_rgb
        assert preprocessor.mean == [122.771, 116.746, 104.094] and preprocessor.std == [68.501, 66.632, 70.323]
        model = MODELS.build(shrink(cfg).model)
        rule = model.anchor_rule
        assert (rule.k, rule.k_min, rule.k_min_scope, rule.per) == (2, 5, 'image', 'pixel')
        assert (model.fusion.beta, model.fusion.center, model.fusion.decision) == (2.5, True, 'host')


def test_models_that_configs_name_have_weights() -> None:
    for model, tag in settings.BACKBONES.values():
        assert open_clip.get_pretrained_cfg(model, tag)
        assert open_clip.get_model_config(model).get('quick_gelu', False) == (tag == 'openai')
    for name in (*settings.PROXIES.values(), 'vit_base_patch16_224.dino', 'vit_base_patch14_dinov2.lvd142m'):
        assert timm.models.get_pretrained_cfg(name).has_weights


def test_no_config_inherits_from_outside() -> None:
    for path in CONFIGS.rglob('*.py'):
        assert 'mmseg::' not in path.read_text(encoding='utf-8')


def test_settings_of_a_benchmark_are_stated_once() -> None:
    # Other backbones and encoders only name themselves: what is said about the benchmark comes from ViT-B/16.
    for name in ALL:
        host, variant, backbone, benchmark = parse(name)
        text = (CONFIGS / host / f'{name}.py').read_text(encoding='utf-8')
        # ResCLIP has NACLIP's protocol, and tests other hosts by it as well.
        own = (host, variant) in (('sclip', 'resclip'), ('clearclip', 'resclip'))
        derived = not own and variant != '224' and (backbone != 'vit-b16' or variant != '')
        assert ('class_names' not in text) == derived
        assert len(text.splitlines()) <= (4 if derived else 15)
