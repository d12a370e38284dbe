"""The configs of the miniature world: their networks are the trained ones, and the committed weights fit."""

from __future__ import annotations

import pytest
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS
from tpa_tools.miniature_training import train_clip, train_encoder, train_fcn, train_sam
from tpa_tools.miniature_training.cards import WEIGHTS, read_card
from tpa_tools.miniature_training.measure import HOSTS

from tests.helpers.miniature_world import CONFIGS, load
from tests.helpers.world import ROOT
from tpa_mmseg.miniature.textures import GROUNDS, THINGS
from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.sam.model import SAMModel

init_default_scope('mmseg')
NAMES = sorted(path.stem for path in CONFIGS.glob('*.py'))
NETWORKS = Config.fromfile(ROOT / 'configs/_base_/miniature.py').miniature
# The weights may take so many bytes of the repository.
BUDGET = 8_000_000


def settings(name: str, kind: type):
    """The settings on a card."""
    stored = read_card(WEIGHTS / f'{name}.safetensors')['settings']
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()})


@pytest.mark.parametrize('name', NAMES)
def test_model_is_built_with_the_committed_weights_and_has_the_classes_of_its_data(name: str) -> None:
    if name.startswith('trident'):
        pytest.importorskip('segment_anything')  # an extra of the package
    cfg = load(name)
    model = MODELS.build(cfg.model)
    model.set_classes(DATASETS.build(cfg.test_dataloader.dataset).metainfo)
    assert model.anchor_rule.k == 2.0 and model.anchor_rule.k_min == 5
    assert cfg.model.fusion == {'alpha': 0.5, 'lambda_': 5.0, 'center': True}


def test_every_host_has_its_configs() -> None:
    expected = {f'{host}_mini-b8' for host in HOSTS} | {'fcn_mini'}
    expected |= {f'{host}_mini-l7' for host in ('sclip', 'clearclip', 'naclip', 'proxyclip')}
    assert expected | {'sclip_mini-b8_background', 'trident_mini-b8_background'} <= set(NAMES)


@pytest.mark.parametrize(('key', 'name'), [('clip_b8', 'clip'), ('clip_l7', 'clip_p7')])
def test_clip_is_the_trained_one(key: str, name: str) -> None:
    assert NETWORKS[key].model == train_clip.model_config(settings(name, train_clip.CLIPSettings))


def test_encoder_is_the_trained_one() -> None:
    assert NETWORKS.encoder.model == train_encoder.model_config(settings('encoder', train_encoder.EncoderSettings))


def test_sam_and_fcn_are_the_trained_ones() -> None:
    trained = read_card(WEIGHTS / 'sam.safetensors')['settings']['model']
    assert {key: list(v) if isinstance(v, tuple) else v for key, v in NETWORKS.sam.model.items()} == trained
    assert dict(train_sam.MODEL).keys() == trained.keys()
    assert Config.fromfile(CONFIGS / 'fcn_mini.py').model.host.segmentor == train_fcn.SEGMENTOR


def test_image_encoder_of_sam_is_that_of_the_whole() -> None:
    sam, encoder = SAMModel.of(dict(NETWORKS.sam.model)), NETWORKS.sam_encoder
    assert encoder.pretrained == NETWORKS.sam.checkpoint
    assert encoder.model == {
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


def test_words_are_those_of_the_world() -> None:
    assert NETWORKS.classes == list(CLASSES)
    assert NETWORKS.classes_background == [list(GROUNDS), *THINGS]


def test_weights_stay_small() -> None:
    assert sum(path.stat().st_size for path in WEIGHTS.glob('*.safetensors')) < BUDGET
