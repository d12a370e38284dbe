"""TENT gives the numbers of the implementation it was compared with; a stream is remembered beside the host."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.helpers.golden import TOLERANCE, golden_files, load, plugin_clip
from tests.helpers.zoo import clip_options, images
from tpa_mmseg.errors import TPAError
from tpa_mmseg.plugins import TENT

FILES = golden_files('plugins', 'tent_*.npz')
ADAPTED = {'atol': 5e-4, 'rtol': 0}


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_adaptation_is_that_of_the_original(path: Path, plugin_weights: str) -> None:
    golden = load(path)
    host = {
        'type': path.stem.split('_')[1].upper(),
        'clip': {'model': plugin_clip(), 'pretrained': plugin_weights},
        'text_features': golden['text'],
        'logit_scale': float(golden['logit_scale']),
        'slide_crop': 0,
        'pamr_steps': 0,
    }
    model = TENT(host, steps=int(golden['steps']), lr=float(golden['lr']), scope='batch')
    norms, inputs, scale = model.new_norms(), golden['image'], model.host.logit_scale
    torch.testing.assert_close(model.adapt(norms, list(inputs)), golden['losses'], **TOLERANCE)
    expected = {name.removeprefix('post_ln/'): v for name, v in golden.items() if name.startswith('post_ln/')}
    torch.testing.assert_close({name: copy.detach() for name, copy in norms.copies.items()}, expected, **TOLERANCE)
    with torch.no_grad():
        torch.testing.assert_close(scale * model.host.patch_scores(inputs), golden['pre_patch'], **TOLERANCE)
        adapted = torch.stack([maps[0] for maps in model.score_windows([[image] for image in inputs])])
    torch.testing.assert_close(scale * adapted, golden['post_patch'], **ADAPTED)


def tiny(**options) -> TENT:
    torch.manual_seed(7)
    host = {**clip_options(), 'type': 'NACLIP', 'slide_crop': 0, 'pamr_steps': 0}
    return TENT(host, **{'steps': 2, **options})


def labels_and_scores(model: TENT, *inputs: torch.Tensor) -> list[torch.Tensor]:
    with torch.no_grad():
        return [model.score_maps([image])[0].probabilities() for image in inputs]


def test_a_stream_carries_on_and_an_image_forgets() -> None:
    first, second = images((48, 64), (48, 64))
    (alone,) = labels_and_scores(tiny(), second)
    assert torch.equal(labels_and_scores(tiny(), first, second)[1], alone)
    assert (labels_and_scores(tiny(scope='stream'), first, second)[1] - alone).abs().max() > 1e-3
    # The second image of a stream goes on with Adam's moments, not only with the LayerNorms.
    twice = labels_and_scores(tiny(scope='stream'), first, first)[1]
    assert torch.equal(twice, labels_and_scores(tiny(steps=4), first)[0])


def test_a_stream_does_not_know_batches() -> None:
    inputs = images((48, 64), (48, 64))
    with torch.no_grad():
        together = tiny(scope='stream').score_maps(torch.stack(inputs))
    for scores, expected in zip(together, labels_and_scores(tiny(scope='stream'), *inputs), strict=True):
        torch.testing.assert_close(scores.probabilities(), expected, atol=1e-5, rtol=0)


def test_a_stream_leaves_the_hosts_weights_and_its_fingerprint_alone() -> None:
    model, (image,) = tiny(scope='stream'), images((48, 64))
    before, fingerprint = {k: v.clone() for k, v in model.state_dict().items()}, model.fingerprint()
    (first,) = labels_and_scores(model, image)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model.fingerprint() == fingerprint
    model.reset()
    assert torch.equal(labels_and_scores(model, image)[0], first)


def test_entropy_goes_down() -> None:
    model = tiny(steps=6)
    losses = model.adapt(model.new_norms(), images((48, 64)))
    assert losses[-1] < losses[0]


def test_wrong_settings_are_one_sentence() -> None:
    with pytest.raises(TPAError, match='steps must be 0 or more'):
        tiny(steps=-1)
    with pytest.raises(TPAError, match="TENT.scope must be one of image, batch, stream, not 'never'"):
        tiny(scope='never')
