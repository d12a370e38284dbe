"""T3A gives the numbers of its original implementation, on patches with an explicit memory."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.helpers.golden import golden_file, load
from tests.helpers.zoo import clip_options, images
from tpa_mmseg.errors import TPAError
from tpa_mmseg.plugins import T3A
from tpa_mmseg.plugins.t3a import Supports

EXACT = {'atol': 1e-5, 'rtol': 0}


@pytest.mark.parametrize('count', [1, 5, 20])
@pytest.mark.parametrize('scale', [1, 20])
def test_supports_and_prototypes_are_those_of_the_original(scale: int, count: int) -> None:
    golden = load(golden_file('plugins', 't3a.npz'))
    expected = {k.removeprefix(f'scale{scale}_K{count}_'): v for k, v in golden.items()}
    weight = scale * golden['text']
    supports = Supports.of(weight, weight)
    for index in (1, 2):
        features = golden[f'batch{index}']
        supports = supports.joined(Supports.of(features, weight)).most_certain(count, 5)
        torch.testing.assert_close(features @ supports.prototypes(5).T, expected[f'out{index}'], **EXACT)
    torch.testing.assert_close(supports.prototypes(5).T, expected['proto2'], **EXACT)
    assert (supports.labels < 5).sum() == expected['n_supports']
    assert len(supports.labels) <= 5 * count


def tiny(**options) -> T3A:
    torch.manual_seed(7)
    host = {**clip_options(), 'type': 'NACLIP', 'slide_crop': 32, 'slide_stride': 16, 'pamr_steps': 0}
    host.update(options.pop('host', {}))
    return T3A(host, **{'filter_k': 3, **options})


@torch.no_grad()
def scores_of(model: T3A, *inputs: torch.Tensor) -> list[torch.Tensor]:
    return [model.score_maps([image])[0].probabilities() for image in inputs]


@torch.no_grad()
def test_patches_of_all_windows_join_before_the_image_is_scored() -> None:
    model, (image,) = tiny(), images((48, 64))
    windows = torch.stack(model.host.sliding.cut(image))
    patches = F.normalize(model.host.features(windows), dim=1).permute(0, 2, 3, 1).flatten(0, 2)
    text, scale = model.host.text_features, model.host.logit_scale
    logits = scale * patches @ text.T
    entropies = torch.distributions.Categorical(logits=logits).entropy()
    own = torch.distributions.Categorical(logits=scale**2 * text @ text.T).entropy()
    prototypes = []
    for query in range(len(text)):
        candidates = [(own[query].item(), text[query])]
        candidates += [(entropies[i].item(), patches[i]) for i in (logits.argmax(1) == query).nonzero()[:, 0].tolist()]
        surest = sorted(candidates, key=lambda pair: pair[0])[:3]
        prototypes.append(F.normalize(torch.stack([feature for _, feature in surest]).sum(0), dim=0))
    expected = (patches @ torch.stack(prototypes).T).view(len(windows), 4, 4, 5).permute(0, 3, 1, 2)
    (found,) = model.score_windows([list(windows)])
    torch.testing.assert_close(torch.stack(found), expected, **EXACT)


def test_a_stream_carries_on_and_an_image_forgets() -> None:
    first, second = images((48, 64), (37, 53))
    (alone,) = scores_of(tiny(), second)
    assert torch.equal(scores_of(tiny(), first, second)[1], alone)
    model = tiny(scope='stream')
    fingerprint = model.fingerprint()
    assert (scores_of(model, first, second)[1] - alone).abs().max() > 1e-3
    assert model.fingerprint() == fingerprint
    model.reset()
    assert torch.equal(scores_of(model, second)[0], alone)


def test_a_stream_keeps_a_bounded_memory() -> None:
    model = tiny(scope='stream')
    for image in images(*[(48, 64)] * 4):
        scores_of(model, image)
        assert len(model._stream.labels) <= 5 * 3
    with pytest.raises(TPAError, match='would keep all patches: set filter_k'):
        tiny(filter_k=None, scope='stream')
    with pytest.raises(TPAError, match='at least 1'):
        tiny(filter_k=0)


def test_a_query_without_supports_has_no_prototype() -> None:
    supports = Supports(torch.eye(3), torch.tensor([0, 2, 1]), torch.zeros(3)).only(torch.arange(3) < 2, 3)
    assert torch.equal(supports.prototypes(3), torch.tensor([[1.0, 0, 0], [0, 0, 0], [0, 1, 0]]))


def test_nan_is_remembered_by_nobody() -> None:
    model, (image, other) = tiny(scope='stream', host={'nonfinite': 'keep'}), images((48, 64), (48, 64))
    image[:, 2, 2] = float('nan')
    assert scores_of(model, image)[0].isnan().any()
    assert torch.isfinite(scores_of(model, other)[0]).all()
