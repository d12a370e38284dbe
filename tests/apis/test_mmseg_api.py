"""MMSegmentation's own ways to a picture, with our configs: the classes have the right names and colors."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from mmseg.apis import MMSegInferencer, inference_model, init_model, show_result_pyplot

from tests.helpers.tiny_configs import load, shrink
from tests.helpers.tiny_segmenter import painted, tiny_config
from tests.helpers.world import FCN, ROOT
from tpa_mmseg.datasets import PascalVOC20Dataset
from tpa_mmseg.hosts.class_meta import meta_of_config
from tpa_mmseg.miniature import MiniatureDataset
from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.visualization import class_palette

#: Those of the dataset, but for one that the difference map has.
PALETTE = class_palette(20, PascalVOC20Dataset.METAINFO['palette'])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A shipped config with tiny networks; the dataset that it names is not here."""
    cfg = shrink(load('sclip_vit-b16_voc20'))
    np.savez(tmp_path / 'text.npz', text_features=cfg.model.host.text_features.numpy())
    cfg.model.host.text_features = str(tmp_path / 'text.npz')
    cfg.test_pipeline[1].scale = (512, 64)
    cfg.dump(tmp_path / 'config.py')
    return tmp_path / 'config.py'


def infer(config: Path | Config, **options) -> MMSegInferencer:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # that no checkpoint is loaded is as it should be
        return MMSegInferencer(config if isinstance(config, Config) else str(config), device='cpu', **options)


def test_init_model_knows_the_classes_of_the_config(config: Path) -> None:
    model = init_model(str(config), device='cpu')
    assert model.dataset_meta['classes'] == PascalVOC20Dataset.METAINFO['classes']
    assert model.dataset_meta['palette'] == PALETTE.tolist()
    sample = inference_model(model, painted())
    picture = show_result_pyplot(model, painted(), sample, show=False)
    assert picture.shape == painted().shape


def test_inferencer_paints_the_classes_of_the_config_not_those_of_cityscapes(config: Path) -> None:
    inferencer = infer(config)
    found = inferencer(painted(), return_vis=True, opacity=1.0, with_labels=False)
    assert inferencer.visualizer.dataset_meta['classes'] == PascalVOC20Dataset.METAINFO['classes']
    painted_as, wanted = found['visualization'], PALETTE[found['predictions']]
    # MMEngine draws with Matplotlib, which may move pixels by one (3.10 does).
    assert {*map(tuple, painted_as.reshape(-1, 3))} <= {*map(tuple, wanted.reshape(-1, 3))}
    assert (painted_as == wanted).all(-1).mean() > 0.5


def test_names_in_the_host_serve_where_the_config_has_no_data_set() -> None:
    cfg = tiny_config(class_names=[['tv', 'television'], ['кошка']])
    model = init_model(cfg, device='cpu')
    assert model.dataset_meta['classes'] == ('tv', 'кошка')
    assert len(model.dataset_meta['palette']) == 2


def test_wrapped_segmentor_has_the_classes_of_its_data_set() -> None:
    assert init_model(str(FCN), device='cpu').dataset_meta['classes'] == CLASSES


def test_classes_may_depend_on_the_options_of_the_data_set() -> None:
    cfg = Config.fromfile(ROOT / 'configs/miniature/sclip_mini-b8_background.py')
    assert meta_of_config(cfg, 9)['classes'] == MiniatureDataset.WITH_BACKGROUND['classes']
    assert meta_of_config(cfg, 14)['classes'] == MiniatureDataset.METAINFO['classes']
    assert meta_of_config(cfg, 3) is None


def test_host_alone_knows_its_classes_too(config: Path) -> None:
    cfg = Config.fromfile(config)
    preprocessor = cfg.model.data_preprocessor
    cfg.model = {**cfg.model.host, 'data_preprocessor': preprocessor}
    assert init_model(cfg, device='cpu').dataset_meta['classes'] == PascalVOC20Dataset.METAINFO['classes']
