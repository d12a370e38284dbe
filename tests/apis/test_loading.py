"""Which models are loaded, and what is said if their weights are missing or a word is unknown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config

from tests.helpers.tiny_segmenter import painted, tiny_config
from tpa_mmseg.apis import Segmenter, host_names
from tpa_mmseg.apis.loading import load_model
from tpa_mmseg.apis.options import SegmenterOptions, resolve_config, text_host
from tpa_mmseg.clip.names import ClassNames
from tpa_mmseg.errors import TPAError
from tpa_mmseg.miniature.world import CLASSES, PALETTE, paint

OWN = ('cat', 'tv; television')
MINIATURE = 'mini-b8'


@pytest.mark.parametrize('host', host_names())
@pytest.mark.parametrize('background', (False, True))
def test_every_host_has_settings_for_own_classes(host: str, background: bool) -> None:
    cfg = resolve_config(SegmenterOptions(OWN, host, 'vit-b16', background)).cfg
    assert cfg.model.type == 'TPASegmentor' and cfg.test_pipeline
    inner = text_host(cfg.model)
    assert (inner.get('prob_thd', 0) > 0) == background
    assert 'area_thd' not in inner
    assert inner.type.lower() == host.partition('-')[0]


def test_words_for_the_background_are_those_of_the_host() -> None:
    cfg = resolve_config(SegmenterOptions(OWN, 'sclip', 'vit-b16', background=True)).cfg
    assert 'sky' in ClassNames.read(cfg.model.host.class_names).names[0]


@pytest.mark.parametrize('host', ('clip', 'sclip', 'naclip', 'proxyclip'))
def test_miniature_comes_with_the_package(host: str) -> None:
    segmenter = Segmenter('grass, zebra, star', host, MINIATURE, progress=False)
    assert host in segmenter.description and 'miniature' in segmenter.description
    assert segmenter.palette[1] == list(PALETTE[CLASSES.index('zebra')])
    assert segmenter.segment(painted()).labels.shape == painted().shape[:2]


def test_name_of_a_suite_is_its_backbone() -> None:
    cfg = resolve_config(SegmenterOptions(['zebra', 'water'], backbone='miniature')).cfg
    assert cfg.filename == resolve_config(SegmenterOptions(['zebra', 'water'], backbone=MINIATURE)).cfg.filename


def test_miniature_sees_its_world() -> None:
    scenes = [paint(seed) for seed in range(990_000, 990_004)]
    results = Segmenter(list(CLASSES), 'sclip', MINIATURE, progress=False).segment([scene.image for scene in scenes])
    known = [scene.labels != 255 for scene in scenes]
    right = [
        (result.labels == scene.labels)[where].mean()
        for result, scene, where in zip(results, scenes, known, strict=True)
    ]
    assert np.mean(right) > 0.5


def test_missing_weights_are_one_sentence_with_the_command_that_downloads_them(
    no_hub: Path, weights_folder: Path
) -> None:
    for options in ({}, {'backbone': 'vit-b16'}):
        with pytest.raises(TPAError, match='save it as') as error:
            Segmenter(['grass', 'zebra'], **options)
        assert str(weights_folder / 'ViT-B-16.openai.safetensors') in str(error.value)
        command = str(error.value).partition('tpa weights download ')[2]
        assert Path(command).name == 'sclip_vit-b16_context59.py' and '\n' not in str(error.value)


def test_unknown_words_of_the_miniature_are_all_named() -> None:
    with pytest.raises(TPAError, match="'sofa', 'television'") as error:
        Segmenter(['Grass', 'sofa', 'star; television'], backbone=MINIATURE)
    assert 'grass' in str(error.value)


def test_background_of_the_miniature_is_its_grounds() -> None:
    loaded = load_model(SegmenterOptions(['zebra', 'water'], 'sclip', MINIATURE, background=True))
    assert loaded.host.names.names[0] == ('grass', 'sand', 'brick', 'wood', 'cloud')
    assert loaded.classes == ('background', 'zebra', 'water')
    assert loaded.host.rule.prob_thd > 0


def test_large_images_are_shrunk_to_the_scenes_of_the_miniature() -> None:
    loaded = load_model(SegmenterOptions(['zebra', 'water'], 'sclip', MINIATURE))
    for size, expected in (((128, 160), (128, 160)), ((1200, 1600), (160, 213)), ((10, 3000), (2, 640))):
        image = np.zeros((*size, 3), np.uint8)
        packed = loaded.pipeline({'img': image, 'img_shape': size, 'ori_shape': size})
        assert tuple(packed['inputs'].shape[1:]) == expected
        assert tuple(packed['data_samples'].ori_shape) == size


def test_classes_of_the_dataset_have_its_colors_and_others_distinct_ones() -> None:
    config = tiny_config()
    config.test_dataloader = {'dataset': {'type': 'MiniatureDataset'}}

    def palette(*names: str, **options) -> list[list[int]]:
        return load_model(SegmenterOptions(list(names), config, **options)).palette

    zebra, star = (list(PALETTE[CLASSES.index(name)]) for name in ('zebra', 'star'))
    assert palette('zebra', 'Star') == [zebra, star]
    assert palette('zebra', 'star', background='sky') == [[150, 150, 150], zebra, star]
    assert palette('zebra', 'sofa') != [zebra, star]
    assert len({tuple(color) for color in palette('zebra', 'sofa', 'star')}) == 3


@pytest.mark.parametrize(
    ('options', 'says'),
    (
        ({'host': 'nobody'}, "Unknown host 'nobody'. Choose from: clearclip"),
        ({'backbone': 'vit-x1'}, "Unknown backbone 'vit-x1'. Choose from: vit-b16"),
        ({'host': 'trident', 'backbone': 'vit-l14'}, 'Choose from: vit-b16, vit-h14, mini-b8'),
        ({'host': 'gem', 'backbone': 'mini-l7'}, 'Choose from: mini-b8'),
        ({'host': 'nowhere.py'}, 'Config not found: nowhere.py'),
        ({'host': Config({'model': {'type': 'SCLIP', 'clip': {'model': 'ViT-B-16'}}})}, 'No test_pipeline'),
        ({'classes': None}, 'No classes'),
    ),
)
def test_wrong_options_are_one_sentence(options: dict, says: str) -> None:
    with pytest.raises(TPAError, match=says):
        load_model(SegmenterOptions(**{'classes': OWN, **options}))
