"""MLMP gives the numbers of its original implementation, learns only where it should and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.helpers.golden import TOLERANCE, golden_files, load, plugin_clip
from tests.helpers.zoo import TINY_CLIP, ZOO, clip_options, images, proxy
from tpa_mmseg.encoders.clip_encoder import CLIPEncoder
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import SCLIP
from tpa_mmseg.plugins import MLMP
from tpa_mmseg.plugins.mlmp import TEMPLATES
from tpa_mmseg.segmentors import TPASegmentor

FILES = golden_files('plugins', 'mlmp_*.npz')
ADAPTED = {'atol': 5e-4, 'rtol': 0}  # Adam enlarges what rounding leaves
Golden = dict[str, torch.Tensor]


def build(path: Path, golden: Golden, weights: str, steps: int | None = None) -> MLMP:
    """The model of a case. Args: steps: other than the case's."""
    kind = path.stem.split('_')[1].upper()
    host = {
        'type': kind,
        'clip': {'model': plugin_clip(), 'pretrained': weights},
        'logit_scale': float(golden['logit_scale']),
        'gaussian_std': float(golden['gaussian_std']),
        'slide_crop': 0,
        'pamr_steps': 0,
    }
    return MLMP(
        host,
        template_features=golden['templates'],
        layers=len(golden['layers']),
        cls_weight=float(golden['alpha_cls']),
        prompt_integration='text' if path.stem.endswith('_text') else 'loss',
        steps=int(golden['steps']) if steps is None else steps,
        lr=float(golden['lr']),
        scope='batch',
    )


def patch_logits(model: MLMP, inputs: torch.Tensor) -> torch.Tensor:
    """(B, Q, gh, gw) logits of whole images, with the LayerNorms as they are."""
    return model.host.logit_scale * torch.stack([maps[0] for maps in model.score_adapted([[i] for i in inputs])])


def full_logits(model: MLMP, inputs: torch.Tensor) -> torch.Tensor:
    return torch.stack([scores.source.rows(0, scores.size[0]) for scores in model.score_maps(inputs)])


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
@torch.no_grad()
def test_layers_prompts_and_fusion_are_those_of_the_original(path: Path, plugin_weights: str) -> None:
    golden = load(path)
    model, inputs = build(path, golden, plugin_weights), golden['image']
    torch.testing.assert_close(model.host.text_features, golden['text_mean'], **TOLERANCE)
    outputs = torch.stack(model.layer_outputs(inputs)[0])
    torch.testing.assert_close(model.layer_weights(outputs, inputs), golden['pre_layer_weights'], **TOLERANCE)
    torch.testing.assert_close(patch_logits(model, inputs), golden['pre_eval_patch'], **TOLERANCE)
    # The file of the ablation has the logits of single templates, which it does not use.
    model.prompt_integration = 'loss'
    patches, token = model.loss_logits(inputs)
    torch.testing.assert_close(patches, golden['pre_loss_logits'], **TOLERANCE)
    assert (token is None) == (golden['alpha_cls'] == 0)
    if token is not None:
        torch.testing.assert_close(token, golden['pre_cls_logits'], **TOLERANCE)


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_adaptation_is_that_of_the_original(path: Path, plugin_weights: str) -> None:
    golden = load(path)
    model, inputs = build(path, golden, plugin_weights), golden['image']
    norms = model.new_norms()
    torch.testing.assert_close(model.adapt(norms, list(inputs)), golden['losses'], **TOLERANCE)
    expected = {name.removeprefix('post_ln/'): v for name, v in golden.items() if name.startswith('post_ln/')}
    torch.testing.assert_close({name: copy.detach() for name, copy in norms.copies.items()}, expected, **TOLERANCE)
    with torch.no_grad(), norms.in_use():
        torch.testing.assert_close(patch_logits(model, inputs), golden['post_eval_patch'], **ADAPTED)
        outputs = torch.stack(model.layer_outputs(inputs)[0])
        torch.testing.assert_close(model.layer_weights(outputs, inputs), golden['post_layer_weights'], **TOLERANCE)


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
@torch.no_grad()
def test_predictions_are_those_of_the_original_with_all_steps_one_and_none(path: Path, plugin_weights: str) -> None:
    golden = load(path)
    inputs, size = golden['image'], golden['image'].shape[-2:]
    torch.testing.assert_close(
        full_logits(build(path, golden, plugin_weights), inputs), golden['post_eval_full'], **ADAPTED
    )
    torch.testing.assert_close(
        full_logits(build(path, golden, plugin_weights, steps=0), inputs), golden['pre_eval_full'], **TOLERANCE
    )
    one = F.interpolate(golden['step1_eval_patch'], size, mode='bilinear')
    torch.testing.assert_close(full_logits(build(path, golden, plugin_weights, steps=1), inputs), one, **ADAPTED)


def tiny(**options) -> MLMP:
    """Around a tiny NACLIP with several windows and two templates."""
    torch.manual_seed(7)
    host = {**clip_options(), 'type': 'NACLIP', 'slide_crop': 32, 'slide_stride': 16, 'pamr_steps': 0}
    host.update(options.pop('host', {}))
    templates = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(6))
    return MLMP(host, **{'template_features': templates, 'steps': 2, **options})


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_untouched(model: MLMP, before: dict[str, torch.Tensor]) -> None:
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert not any(p.requires_grad or p.grad is not None for p in model.parameters())


def test_weights_after_a_test_are_the_weights_before_it() -> None:
    model = tiny()
    before, tensors = weights(model), {name: id(p) for name, p in model.named_parameters()}
    changed = model.predict(images((48, 64)))[0].pred_sem_seg.data
    assert_untouched(model, before)
    assert {name: id(p) for name, p in model.named_parameters()} == tensors
    assert not torch.equal(changed, tiny(steps=0).predict(images((48, 64)))[0].pred_sem_seg.data)


@pytest.mark.parametrize('call', [1, 5, 17])
def test_weights_are_untouched_when_an_error_interrupts(call: int) -> None:
    model = tiny()
    before, calls = weights(model), []

    def interrupt(*_) -> None:
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt

    model.host.tower.visual.ln_post.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.predict(images((48, 64)))
    assert_untouched(model, before)


def test_gradients_stay_inside_whatever_mode_the_caller_is_in() -> None:
    model, inputs = tiny(), images((48, 64))
    with torch.no_grad():
        (expected,) = model.score_maps(inputs)
        assert not torch.is_grad_enabled()
    with torch.enable_grad():
        (outside,) = model.score_maps(inputs)
    assert not outside.probabilities().requires_grad
    with torch.inference_mode():
        (inference,) = model.score_maps(inputs)
        assert torch.equal(inference.probabilities(), expected.probabilities())
    assert torch.equal(outside.probabilities(), expected.probabilities())


def test_no_step_computes_no_gradient() -> None:
    model = tiny(steps=0)
    seen = []
    model.host.tower.visual.ln_post.register_forward_hook(lambda *_: seen.append(torch.is_grad_enabled()))
    with torch.enable_grad():
        model.score_maps(images((48, 64)))
    assert seen and not any(seen)


def test_tpa_around_it_leaves_weights_and_gradients_alone() -> None:
    model = TPASegmentor(
        tiny(host={'logit_scale': 5.0}), CLIPEncoder(clip_options()['clip']), anchors={'k': 0.5, 'k_min': 1}
    )
    before = weights(model)
    raw = [(image * 60 + 120).clamp(0, 255).byte() for image in images((48, 64))]
    bank = model.new_bank()
    for evidence, _ in model.look({'inputs': raw, 'data_samples': None}):
        bank.add(evidence)
    model.set_bank(bank)
    (result,) = model.test_step({'inputs': raw, 'data_samples': None})
    assert torch.equal(result.host_sem_seg.data, model.host.test_step({'inputs': raw})[0].pred_sem_seg.data)
    assert_untouched(model, before)


@torch.no_grad()
def test_windows_in_memory_at_a_time_do_not_change_the_numbers() -> None:
    inputs = images((48, 64), (37, 53))
    one, many = (tiny(host={'window_batch': batch}, scope='batch').score_maps(inputs) for batch in (1, 16))
    for a, b in zip(one, many, strict=True):
        torch.testing.assert_close(a.probabilities(), b.probabilities(), atol=1e-4, rtol=0)


@torch.no_grad()
def test_a_batch_is_adapted_together_only_where_the_policy_says_so() -> None:
    inputs = images((48, 64), (48, 64))
    alone = tiny().score_maps(inputs[:1])[0].probabilities()
    torch.testing.assert_close(tiny().score_maps(inputs)[0].probabilities(), alone, atol=1e-5, rtol=0)
    together = tiny(scope='batch').score_maps(inputs)[0].probabilities()
    assert (together - alone).abs().max() > 1e-3


def test_a_window_with_nan_does_not_spoil_the_others() -> None:
    (image,) = images((32, 64))
    broken = image.clone()
    broken[:, :, 60:] = float('nan')
    options = {'host': {'nonfinite': 'keep', 'slide_stride': 32}}
    half = tiny(**options).score_maps([image[:, :, :32]])[0].probabilities()
    probabilities = tiny(**options).score_maps([broken])[0].probabilities()
    torch.testing.assert_close(probabilities[:, :, :32], half, atol=1e-4, rtol=0)
    assert probabilities[:, :, 32:].isnan().all()


def test_seven_templates_make_the_text_of_classes() -> None:
    host = {
        'type': 'NACLIP',
        'clip': {'model': TINY_CLIP},
        'class_names': [['dog', 'puppy'], 'cat'],
        'templates': ['{}'],
    }
    model = MLMP(host)
    assert len(TEMPLATES) == 7 and model.template_features.shape == (7, 3, 16)
    assert model.host.query_to_class == [0, 0, 1]
    mean = F.normalize(model.template_features.mean(0), dim=1)
    torch.testing.assert_close(model.host.text_features, mean)


def test_ready_made_text_is_a_single_template() -> None:
    model = ZOO['MLMP around NACLIP']()
    assert torch.equal(model.template_features[0], model.host.text_features) and len(model.template_features) == 1


def test_layers_are_three_quarters_where_the_last_block_gives_attention_only() -> None:
    assert tiny().layers == 2
    assert tiny(host={'residual': True}).layers == 1
    assert ZOO['MLMP around SCLIP']().layers == ZOO['MLMP around GEM']().layers == 1
    assert tiny(host={'plugin': {'type': 'FSA'}, 'type': 'ClearCLIP'}).layers == 1


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    with pytest.raises(TPAError, match='set layers to 1'):
        tiny(host={'residual': True}, layers=2)
    with pytest.raises(TPAError, match='between 1 and 3, not 4'):
        tiny(layers=4)
    with pytest.raises(TPAError, match="scope must be one of image, batch, not 'stream'"):
        tiny(scope='stream')
    with pytest.raises(TPAError, match='given as a config'):
        MLMP(SCLIP(**clip_options()), template_features=torch.randn(2, 5, 16))


@torch.no_grad()
def test_a_proxy_inside_the_host_gets_no_gradient() -> None:
    host = {**clip_options(), 'type': 'ProxyCLIP', 'proxy': proxy(4), 'slide_crop': 56, 'slide_stride': 28}
    model = MLMP(host, steps=1)
    before = weights(model)
    model.predict(images((56, 56)))
    assert_untouched(model, before)
