"""Stock OpenMMLab runs on current Python and PyTorch, quietly, and without giving up PyTorch's safe loading."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmseg.registry import MODELS
from tpa_tools.doctor import survey

from tpa_mmseg import compat
from tpa_mmseg.errors import TPAError

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(
    not isinstance(sys.modules['mmcv._ext'], compat.MissingOps), reason='mmcv has compiled ops in this environment'
)
def test_only_calling_a_missing_op_is_an_error():
    from mmcv.ops import nms

    with pytest.raises(TPAError, match="compiled op 'nms'.*install a full mmcv"):
        nms(torch.zeros(1, 4), torch.zeros(1), 0.5)


def test_installing_twice_changes_nothing():
    before = sys.modules['mmcv._ext']
    compat.install()
    assert sys.modules['mmcv._ext'] is before


def fcn(num_classes: int = 3) -> dict:
    """A tiny fully convolutional network, as a config."""
    return dict(
        type='EncoderDecoder',
        data_preprocessor=dict(type='SegDataPreProcessor'),
        backbone=dict(
            type='ResNet', depth=18, base_channels=4, stem_channels=4, num_stages=1, strides=(1,), dilations=(1,),
            out_indices=(0,),
        ),
        decode_head=dict(
            type='FCNHead', in_channels=4, in_index=0, channels=4, num_convs=1, num_classes=num_classes,
            align_corners=False, loss_decode=dict(type='CrossEntropyLoss'),
        ),
        test_cfg=dict(mode='whole'),
    )  # fmt: skip


def test_a_stock_segmentor_is_built_without_a_word():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter('default')
        compat.install()
        with DefaultScope.overwrite_default_scope('mmseg'):
            model = MODELS.build(fcn())
    assert [str(warning.message) for warning in heard] == []
    logits = model.eval().encode_decode(torch.rand(1, 3, 32, 48), [dict(img_shape=(32, 48), ori_shape=(32, 48))])
    assert logits.shape == (1, 3, 32, 48)


@pytest.mark.skipif('mmengine' not in survey(), reason='the forks of mmengine and mmseg do not share configs this way')
def test_a_config_that_inherits_from_mmseg_is_read_without_a_word(tmp_path):
    (tmp_path / 'config.py').write_text("_base_ = 'mmseg::_base_/models/fcn_r50-d8.py'\n")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter('default', UserWarning)
        compat.install()
        config = Config.fromfile(tmp_path / 'config.py')
    assert config.model.type == 'EncoderDecoder'
    assert [str(warning.message) for warning in heard] == []


def test_the_package_works_where_python_has_no_find_loader():
    # As Python 3.14, which removed it.
    code = (
        'import pkgutil; vars(pkgutil).pop("find_loader", None)\n'
        'import tpa_mmseg\n'
        'from mmengine.model import revert_sync_batchnorm\n'
        'from torch import nn\n'
        'assert pkgutil.find_loader("no_such_module") is None and pkgutil.find_loader("json") is not None\n'
        'print(type(revert_sync_batchnorm(nn.SyncBatchNorm(2))).__name__)'
    )
    environ = {**os.environ, 'PYTHONPATH': str(ROOT)}
    answer = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, env=environ)
    assert answer.stdout.endswith('_BatchNormXd\n'), answer.stderr
