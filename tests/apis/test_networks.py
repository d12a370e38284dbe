"""Which networks are taken, and what is said where they are missing or do not know a word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.tiny_segmenter import painted
from tpa_mmseg.apis import MINIATURE, Segmenter, host_names
from tpa_mmseg.apis.choice import Wish, choices, text_host
from tpa_mmseg.apis.networks import load_networks
from tpa_mmseg.clip.names import ClassNames
from tpa_mmseg.errors import TPAError
from tpa_mmseg.miniature.world import CLASSES, PALETTE, paint

OWN = ('cat', 'tv; television')


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without weights and without a hub. Returns its weights folder."""
    monkeypatch.setenv('TPA_WEIGHTS', str(tmp_path / 'weights'))
    monkeypatch.setenv('HF_HOME', str(tmp_path / 'hub'))
    monkeypatch.setattr('tpa_mmseg.weights._hub_answers', lambda: False)
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_CACHE', str(tmp_path / 'hub'))
    return tmp_path / 'weights'


@pytest.mark.parametrize('host', host_names())
@pytest.mark.parametrize('background', (False, True))
def test_every_host_has_settings_for_own_classes(host: str, background: bool) -> None:
    (choice,) = choices(Wish(OWN, host, 'vit-b16', background))
    assert choice.cfg.model.type == 'TPASegmentor' and choice.cfg.test_pipeline
    inner = text_host(choice.cfg.model)
    assert (inner.get('prob_thd', 0) > 0) == background
    assert 'area_thd' not in inner
    assert inner.type.lower() == host.partition('-')[0]


def test_words_for_the_background_are_those_of_the_host() -> None:
    (choice,) = choices(Wish(OWN, 'sclip', 'vit-b16', background=True))
    assert 'sky' in ClassNames.read(choice.cfg.model.host.class_names).names[0]


@pytest.mark.parametrize('host', ('clip', 'sclip', 'naclip', 'proxyclip'))
def test_miniature_comes_with_the_package(host: str) -> None:
    segmenter = Segmenter('grass, zebra, star', host, MINIATURE, progress=False)
    assert host in segmenter.about and 'miniature' in segmenter.about and not segmenter.note
    assert segmenter.palette[1] == list(PALETTE[CLASSES.index('zebra')])
    assert segmenter.segment(painted()).labels.shape == painted().shape[:2]


def test_miniature_sees_its_world() -> None:
    scenes = [paint(seed) for seed in range(990_000, 990_004)]
    results = Segmenter(list(CLASSES), 'sclip', MINIATURE, progress=False).segment([scene.image for scene in scenes])
    known = [scene.labels != 255 for scene in scenes]
    right = [
        (result.labels == scene.labels)[where].mean()
        for result, scene, where in zip(results, scenes, known, strict=True)
    ]
    assert np.mean(right) > 0.5


def test_miniature_steps_in_and_says_why(offline: Path) -> None:
    segmenter = Segmenter('grass, zebra', progress=False)
    assert MINIATURE in segmenter.about
    assert str(offline / 'ViT-B-16.openai.safetensors') in segmenter.note and 'no connection' in segmenter.note


def test_missing_weights_are_one_sentence_where_the_backbone_is_named(offline: Path) -> None:
    with pytest.raises(TPAError, match='save it as') as error:
        Segmenter(['cat', 'dog'], backbone='vit-b16')
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('backbone', ('auto', MINIATURE))
def test_unknown_words_of_the_miniature_are_all_named(backbone: str, offline: Path) -> None:
    with pytest.raises(TPAError, match="'sofa', 'television'") as error:
        Segmenter(['Grass', 'sofa', 'star; television'], backbone=backbone)
    assert 'zebra' in str(error.value)
    assert ('save it as' in str(error.value)) == (backbone == 'auto')


def test_background_of_the_miniature_is_its_grounds() -> None:
    networks = load_networks(Wish(['zebra', 'water'], 'sclip', MINIATURE, background=True))
    assert networks.host.names.names[0] == ('grass', 'sand', 'brick', 'wood', 'cloud')
    assert networks.class_names == ('background', 'zebra', 'water')
    assert networks.host.rule.prob_thd > 0


def test_large_pictures_are_shrunk_to_the_scenes_of_the_miniature() -> None:
    networks = load_networks(Wish(['zebra', 'water'], 'sclip', MINIATURE))
    for size, expected in (((128, 160), (128, 160)), ((1200, 1600), (160, 213)), ((10, 3000), (2, 640))):
        image = np.zeros((*size, 3), np.uint8)
        packed = networks.prepare({'img': image, 'img_shape': size, 'ori_shape': size})
        assert tuple(packed['inputs'].shape[1:]) == expected
        assert tuple(packed['data_samples'].ori_shape) == size
