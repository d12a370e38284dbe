"""Any segmentor as a host: its labels are those of its own predict, whatever its inference mode."""

from __future__ import annotations

import copy

import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import SegmentorHost

init_default_scope('mmseg')
HEAD = dict(
    type='FCNHead',
    in_channels=16,
    in_index=1,
    channels=8,
    num_convs=1,
    concat_input=False,
    num_classes=5,
    norm_cfg=dict(type='BN'),
)
SEGMENTOR = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(type='SegDataPreProcessor', mean=[120.0] * 3, std=[60.0] * 3, bgr_to_rgb=True),
    backbone=dict(
        type='ResNet',
        depth=18,
        base_channels=8,
        stem_channels=8,
        num_stages=2,
        strides=(1, 2),
        dilations=(1, 1),
        out_indices=(0, 1),
        norm_cfg=dict(type='BN'),
    ),
    decode_head=HEAD,
    test_cfg=dict(mode='whole'),
)


def segmentor(**changes) -> dict:
    config = copy.deepcopy(SEGMENTOR)
    head = {key[5:]: changes.pop(key) for key in list(changes) if key.startswith('head_')}
    config['decode_head'].update(head)
    config.update(changes)
    return ConfigDict(config)


def batch(sizes: list[tuple[int, int]], original: tuple[int, int] | None = (51, 37)) -> dict:
    """Random images as a data loader gives them."""
    samples = []
    for size in sizes:
        meta = {'ori_shape': original or size, 'img_shape': size, 'img_path': 'scene.png'}
        samples.append(SegDataSample(metainfo=meta))
    images = [torch.randint(0, 256, (3, *size), dtype=torch.uint8) for size in sizes]
    return {'inputs': images, 'data_samples': samples}


CASES = {
    'whole': segmentor(),
    'slide': segmentor(test_cfg=dict(mode='slide', crop_size=(32, 32), stride=(20, 20))),
    'align corners': segmentor(head_align_corners=True),
    'padded': segmentor(
        data_preprocessor=dict(
            type='SegDataPreProcessor', mean=[120.0] * 3, std=[60.0] * 3, test_cfg=dict(size_divisor=32)
        )
    ),
    'binary': segmentor(
        head_num_classes=2,
        head_out_channels=1,
        head_threshold=0.4,
        head_loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=True),
    ),
    'cascade': ConfigDict(
        segmentor(),
        type='CascadeEncoderDecoder',
        num_stages=2,
        decode_head=[
            HEAD,
            dict(type='OCRHead', in_channels=16, in_index=1, channels=8, ocr_channels=8, num_classes=5),
        ],
    ),
}


@pytest.mark.parametrize('name', CASES)
def test_labels_are_those_of_the_segmentors_own_predict(name):
    model = MODELS.build(copy.deepcopy(CASES[name])).eval()
    host = SegmentorHost(model)
    host.head.conv_seg.weight.mul_(30)  # so that random weights decide for more than one class
    data = batch([(45, 60), (45, 60)])
    with torch.no_grad():
        expected = model.test_step(copy.deepcopy(data))
        actual = host.test_step(copy.deepcopy(data))
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.pred_sem_seg.data.shape == (1, 51, 37)
        assert (ours.pred_sem_seg.data != theirs.pred_sem_seg.data).float().mean() < 1e-3
        assert theirs.pred_sem_seg.data.unique().numel() > 1


def test_probabilities_are_the_softmax_of_the_segmentors_logits():
    model = MODELS.build(segmentor()).eval()
    host = SegmentorHost(model, return_scores=True)
    data = batch([(45, 60)])
    with torch.no_grad():
        expected = model.test_step(copy.deepcopy(data))[0].seg_logits.data.softmax(0)
        actual = host.test_step(copy.deepcopy(data))[0].seg_logits.data
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_a_binary_head_gives_two_classes_on_the_simplex():
    host = SegmentorHost(copy.deepcopy(CASES['binary']))
    data = host.data_preprocessor(batch([(45, 60)]))
    scores = host.score_maps(**data)[0]
    assert host.num_classes == scores.num_classes == 2
    torch.testing.assert_close(scores.probabilities().sum(0), torch.ones(51, 37))


def test_probability_scores_are_normalized_and_their_sum_is_kept():
    torch.manual_seed(1)
    model = MODELS.build(segmentor()).eval()
    model.decode_head.forward = lambda features: torch.rand(1, 5, 23, 30)
    scores = SegmentorHost(model, output='probabilities').score_maps(torch.rand(1, 3, 45, 60))[0]
    torch.testing.assert_close(scores.probabilities().sum(0), torch.ones(45, 60))
    assert scores.mass.mean() == pytest.approx(2.5, abs=0.2)


def test_images_of_different_sizes_get_the_numbers_they_get_alone():
    host = SegmentorHost(segmentor())
    images = [torch.randn(3, 45, 60), torch.randn(3, 30, 70), torch.randn(3, 8, 8)]
    together = host.score_maps(images)
    for image, scores in zip(images, together, strict=True):
        assert scores.size == tuple(image.shape[-2:])
        torch.testing.assert_close(scores.probabilities(), host.score_maps(image[None])[0].probabilities())


@pytest.mark.parametrize('name', ['whole', 'cascade'])
def test_the_head_resizes_as_always_while_the_host_predicts(name):
    host = SegmentorHost(copy.deepcopy(CASES[name]))
    seen, forward = [], host.head.forward

    def spy(*features):
        seen.append({**vars(host.head)}.get('predict_by_feat'))
        return forward(*features)

    host.head.forward = spy
    (scores,) = host.score_maps(torch.randn(1, 3, 45, 60))
    assert seen == [None]
    assert scores.source.source.shape == (5, 6, 8)  # the head's own size: the last resize was left out


def test_a_moved_or_reloaded_segmentor_is_used_as_it_is():
    host, other, image = SegmentorHost(segmentor()), SegmentorHost(segmentor()), torch.randn(1, 3, 45, 60)
    host.score_maps(image)
    host.load_state_dict(other.state_dict())
    assert torch.equal(host.score_maps(image)[0].probabilities(), other.score_maps(image)[0].probabilities())
    assert host.double().score_maps(image.double())[0].source.source.values.dtype == torch.float64


def test_nan_is_refused_with_the_name_of_the_image():
    host = SegmentorHost(segmentor())
    host.segmentor.decode_head.conv_seg.bias.fill_(float('nan'))
    with pytest.raises(TPAError, match='returned NaN for scene.png'):
        host.test_step(batch([(45, 60)]))


def test_nan_can_be_kept_as_the_hosts_label():
    host = SegmentorHost(segmentor(), nonfinite='keep')
    host.segmentor.decode_head.conv_seg.bias[3] = float('nan')
    labels = host.test_step(batch([(45, 60)]))[0].pred_sem_seg.data
    assert (labels == 3).all()


def test_the_fingerprint_follows_the_weights():
    host = SegmentorHost(segmentor())
    before = host.fingerprint()
    assert before == host.fingerprint()
    host.segmentor.decode_head.conv_seg.bias.add_(1)
    assert before != host.fingerprint()


def test_a_checkpoint_for_another_model_is_refused(tmp_path):
    path = tmp_path / 'other.pth'
    torch.save({'state_dict': MODELS.build(segmentor(head_num_classes=3)).state_dict()}, path)
    with pytest.raises(TPAError, match=r'other\.pth do not fit .*conv_seg'):
        SegmentorHost(segmentor(), checkpoint=str(path))


def test_a_checkpoint_of_mmengine_loads(tmp_path):
    from mmengine.logging import HistoryBuffer

    torch.manual_seed(2)
    model = MODELS.build(segmentor())
    path = tmp_path / 'epoch_1.pth'
    buffer = HistoryBuffer()
    buffer.update(0.5)
    meta = {'epoch': 1, 'dataset_meta': {'classes': ('a', 'b')}}
    torch.save({'meta': meta, 'message_hub': {'log_scalars': {'loss': buffer}}, 'state_dict': model.state_dict()}, path)
    host = SegmentorHost(segmentor(), checkpoint=str(path))
    torch.testing.assert_close(host.segmentor.state_dict(), model.state_dict())


def test_training_is_refused():
    with pytest.raises(TPAError, match='training-free'):
        SegmentorHost(segmentor()).loss(torch.randn(1, 3, 8, 8), [])
