"""Behavior that all hosts share, whatever they compute inside."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from tests.helpers.zoo import NUM_CLASSES, ZOO, clip_options, images
from tpa_mmseg.core import FusedScores, Fusion, Lookup, Prototypes, ScoreMap, label_type
from tpa_mmseg.encoders.clip_encoder import CLIPEncoder
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import Host
from tpa_mmseg.segmentors import TPASegmentor

SIZES = [(48, 64), (37, 53), (64, 41), (21, 90)]
Build = Callable[..., Host]

pytestmark = [
    pytest.mark.parametrize('build', ZOO.values(), ids=ZOO.keys()),
    # The images of these tests are in no file.
    pytest.mark.filterwarnings('ignore:SAM should run on the original image'),
]


def samples(*sizes: tuple[int, int]) -> list[SegDataSample]:
    return [SegDataSample(metainfo={'ori_shape': size, 'img_path': f'{i}.png'}) for i, size in enumerate(sizes)]


@torch.no_grad()
def maps(host: Host, inputs, data_samples=None) -> list[ScoreMap]:
    return host.score_maps(inputs, data_samples)


def assert_same(one: ScoreMap, other: ScoreMap, atol: float = 1e-5) -> None:
    torch.testing.assert_close(one.probabilities(), other.probabilities(), atol=atol, rtol=0)


@pytest.mark.parametrize('size', SIZES)
def test_scores_are_on_the_simplex_at_the_original_size(build: Build, size: tuple[int, int]) -> None:
    host = build()
    (scores,) = maps(host, images(size), samples((45, 70)))
    assert host.num_classes == scores.num_classes == NUM_CLASSES
    assert scores.size == (45, 70)
    probabilities = scores.probabilities()
    assert probabilities.shape == (NUM_CLASSES, 45, 70)
    assert (probabilities >= 0).all()
    torch.testing.assert_close(probabilities.sum(0), torch.ones(45, 70))
    assert (scores.mass > 0).all() and (scores.mass <= 1 + 1e-5).all()
    assert scores.labels().shape == (45, 70)


def test_scores_without_samples_have_the_size_of_the_input(build: Build) -> None:
    (scores,) = maps(build(), images((37, 53)))
    assert scores.size == (37, 53)


def test_bands_do_not_change_the_scores(build: Build) -> None:
    (scores,) = maps(build(), images((48, 64)), samples((45, 70)))
    whole = scores.band(0, 45)
    bands = torch.cat([scores.band(top, min(45, top + 4)) for top in range(0, 45, 4)], 1)
    torch.testing.assert_close(bands, whole, atol=1e-5, rtol=0)


def test_a_host_gives_the_same_numbers_every_time(build: Build) -> None:
    host, inputs = build(), images((48, 64))
    first, second = maps(host, inputs)[0], maps(host, inputs)[0]
    again = maps(build(), inputs)[0]
    assert torch.equal(first.probabilities(), second.probabilities())
    assert torch.equal(first.probabilities(), again.probabilities())


def test_a_batch_gives_each_image_the_numbers_it_gets_alone(build: Build) -> None:
    host, inputs, metas = build(), images((48, 64), (48, 64), (48, 64)), samples((45, 70), (48, 64), (30, 31))
    for image, sample, scores in zip(inputs, metas, maps(host, torch.stack(inputs), metas), strict=True):
        assert_same(scores, maps(host, image[None], [sample])[0])


def test_images_of_different_sizes_get_the_numbers_they_get_alone(build: Build) -> None:
    host, inputs, metas = build(), images(*SIZES), samples(*SIZES[::-1])
    for image, sample, scores in zip(inputs, metas, maps(host, inputs, metas), strict=True):
        assert scores.size == sample.ori_shape
        assert_same(scores, maps(host, image[None], [sample])[0])


def test_a_batch_of_different_sizes_gives_tpa_the_labels_of_one_by_one(build: Build) -> None:
    """The windows of all images go through the network together, five at a time as on a GPU."""
    encoder = CLIPEncoder(clip_options()['clip'])
    model = TPASegmentor(build(window_batch=5), encoder, anchors={'k': 0.5, 'k_min': 1})
    raw = [(image * 60 + 120).clamp(0, 255).byte() for image in images(*SIZES, SIZES[0])]
    sizes = [*SIZES[::-1], (50, 60)]
    bank = model.new_bank()
    for evidence, _ in model.look({'inputs': raw, 'data_samples': samples(*sizes)}):
        bank.add(evidence)
    model.set_bank(bank)
    together = model.test_step({'inputs': raw, 'data_samples': samples(*sizes)})
    model.host.reset()
    for image, sample, result in zip(raw, samples(*sizes), together, strict=True):
        (alone,) = model.test_step({'inputs': [image], 'data_samples': [sample]})
        for name in ('host_sem_seg', 'pred_sem_seg'):
            differing = (getattr(result, name).data != getattr(alone, name).data).float().mean()
            # A matrix product of five windows may round another way than one of one.
            assert differing < 2e-3


def test_predict_labels_every_pixel_of_the_original_image(build: Build) -> None:
    host, inputs = build(return_scores=True), images(*SIZES)
    results = host.predict(inputs, samples(*SIZES[::-1]))
    for scores, result, size in zip(maps(host, inputs, samples(*SIZES[::-1])), results, SIZES[::-1], strict=True):
        assert result.pred_sem_seg.data.dtype == label_type(host.num_classes)
        assert torch.equal(result.pred_sem_seg.data[0], scores.labels())
        assert result.seg_logits.data.shape == (NUM_CLASSES, *size)
    assert 'seg_logits' not in build().predict(inputs)[0]


def test_padding_of_the_data_preprocessor_is_not_seen(build: Build) -> None:
    host, (image,) = build(), images((37, 53))
    (sample,) = samples((37, 53))
    padded = torch.nn.functional.pad(image, (0, 11, 0, 27), value=9.0)
    sample.set_metainfo({'img_padding_size': [0, 11, 0, 27]})
    assert_same(maps(host, padded[None], [sample])[0], maps(host, image[None])[0])


@pytest.mark.parametrize('precision', ['float16', 'bfloat16'])
def test_reduced_precision_gives_nearly_the_same_scores(build: Build, precision: str) -> None:
    # Some virtual machines announce matrix instructions for bfloat16 that they cannot execute; oneDNN would use them.
    with torch.backends.mkldnn.flags(enabled=False):
        (exact,) = maps(build(), images((48, 64)))
        (reduced,) = maps(build(precision=precision), images((48, 64)))
    probabilities = reduced.probabilities()
    assert probabilities.dtype == torch.float32
    difference = (probabilities - exact.probabilities()).abs()
    assert 0 < difference.mean() < 0.1


def test_autocast_around_a_host_does_not_change_it(build: Build) -> None:
    host, inputs = build(), images((48, 64))
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast('cpu', torch.float16):
        (inside,) = maps(host, inputs)
    assert_same(inside, maps(host, inputs)[0])


def test_releasing_frees_only_what_can_be_computed_again(build: Build) -> None:
    (scores,) = maps(build(), images((48, 64)), samples((45, 70)))
    before = scores.nbytes
    probabilities, labels, held = scores.probabilities(), scores.labels(), scores.nbytes
    assert 0 < before <= held
    scores.release()
    assert scores.nbytes <= held
    assert torch.equal(scores.probabilities(), probabilities) and torch.equal(scores.labels(), labels)


def test_an_empty_bank_leaves_the_labels_unchanged(build: Build) -> None:
    (scores,) = maps(build(), images((48, 64)))
    nothing = Prototypes(torch.zeros(NUM_CLASSES, 4), torch.zeros(NUM_CLASSES, dtype=torch.bool))
    fused = FusedScores(scores, Lookup(nothing, torch.randn(4, 3, 4), scores.size), Fusion())
    assert torch.equal(fused.labels(), scores.labels())


def test_a_host_runs_inside_a_tpa_segmentor(build: Build) -> None:
    encoder = CLIPEncoder(clip_options()['clip'])
    model = TPASegmentor(build(prob_thd=0.0), encoder, anchors={'k': 0.5, 'k_min': 1}, fusion={'lambda_': 20.0})
    raw = [(image * 60 + 120).clamp(0, 255).byte() for image in images((48, 64), (37, 53))]
    data = {'inputs': raw, 'data_samples': samples((48, 64), (37, 53))}
    bank = model.new_bank()
    for evidence, _ in model.look(data):
        bank.add(evidence)
    assert bank.counts.sum() == 48 * 64 + 37 * 53
    alone = model.host.test_step(data)
    labels = [result.pred_sem_seg.data.clone() for result in alone]
    model.set_bank(bank)
    for expected, result in zip(labels, model.test_step(data), strict=True):
        assert torch.equal(result.host_sem_seg.data, expected)
        assert result.pred_sem_seg.data.shape == expected.shape


def test_nan_is_refused_with_the_name_of_the_image(build: Build) -> None:
    broken = images((48, 64))
    broken[0][:, 30, 40] = float('nan')
    with pytest.raises(TPAError, match=r'NaN for 0\.png'):
        build().predict(broken, samples((48, 64)))
    labels = build(nonfinite='keep').predict(broken, samples((48, 64)))[0].pred_sem_seg.data
    assert ((labels >= 0) & (labels < NUM_CLASSES)).all()


def test_a_host_is_frozen(build: Build) -> None:
    host = build()
    assert not any(parameter.requires_grad for parameter in host.parameters())
    assert not host.train().training and not any(module.training for module in host.modules())
    with pytest.raises(TPAError, match='training-free'):
        host.loss(torch.zeros(1, 3, 48, 64), [])


def test_fingerprint_is_json_and_knows_the_options(build: Build) -> None:
    fingerprint = build().fingerprint()
    assert json.loads(json.dumps(fingerprint)) == fingerprint
    assert build().fingerprint() == fingerprint
    assert build(logit_scale=3.0).fingerprint() != fingerprint
    assert build(text_features=torch.randn(5, 16)).fingerprint() != fingerprint


def test_a_host_is_registered_under_its_name(build: Build) -> None:
    kind = type(build())
    assert MODELS.get(kind.__name__) is kind
