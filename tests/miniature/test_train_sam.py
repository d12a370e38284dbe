"""The training of the tiny SAM: what it asks, what it minimizes, and that it can be cut off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine import Config
from tpa_tools.miniature_training.sam_losses import disagreement, prompt_losses
from tpa_tools.miniature_training.sam_probe import share_within_regions
from tpa_tools.miniature_training.sam_prompts import KINDS, Asking, Prompts, ask, patch_owners
from tpa_tools.miniature_training.train_sam import SAMSettings, SAMTask, original_names, train, training_of

from tests.helpers.zoo import TINY_SAM, ZOO
from tpa_mmseg.miniature.splits import split_of
from tpa_mmseg.sam.decoder import SAMDecoder
from tpa_mmseg.sam.encoder import SAMEncoder
from tpa_mmseg.sam.model import SAMModel
from tpa_mmseg.weights.files import load_state_dict

pytest.importorskip('segment_anything')

SETTINGS = SAMSettings(model=TINY_SAM, steps=4, images=2, scenes=4, every=2, probes=1)


@pytest.fixture(scope='module')
def decoder() -> SAMDecoder:
    torch.manual_seed(0)
    return SAMDecoder(SAMModel.of(TINY_SAM), None)


def prompts_of(kind: str, decoder: SAMDecoder) -> list[Prompts]:
    """Prompts about all regions of a scene, with boxes as they are."""
    regions = split_of('train').scene(0).regions
    return list(ask(regions, kind, decoder, np.random.default_rng(0), Asking(most=99, jitter=0)))


@pytest.mark.parametrize('kind', KINDS)
def test_points_lie_in_their_masks_and_boxes_enclose_them(kind: str, decoder: SAMDecoder) -> None:
    asked = prompts_of(kind, decoder)
    cell = decoder.model.image_size / decoder.mask_side
    assert sum(len(prompts.targets) for prompts in asked) >= 3
    for prompts in asked:
        for index, target in enumerate(prompts.targets):
            inside = target.nonzero().flip(1) * cell
            if prompts.points is not None:
                assert (inside - prompts.points[index, 0]).abs().amax(1).min() < 2 * cell
            if prompts.boxes is not None:
                low, high = prompts.boxes[index].view(2, 2)
                assert (inside.amin(0) - low).abs().max() < 2 * cell
                assert (inside.amax(0) - high).abs().max() < 2 * cell


def test_kinds_ask_as_they_say(decoder: SAMDecoder) -> None:
    asked = {kind: prompts_of(kind, decoder)[0] for kind in KINDS}
    assert [kind for kind, prompts in asked.items() if prompts.points is None] == ['box']
    assert [kind for kind, prompts in asked.items() if prompts.boxes is None] == ['point']
    assert [kind for kind, prompts in asked.items() if prompts.ambiguous] == ['point']
    side = decoder.mask_side
    shapes = {kind: tuple(prompts.mask.shape) for kind, prompts in asked.items() if prompts.mask is not None}
    assert shapes == {'4d': (1, 1, side, side), '3d': (1, side, side)}


def test_every_kind_is_answered_with_four_masks_and_qualities(decoder: SAMDecoder) -> None:
    embedding = torch.randn(1, 16, 8, 8)
    for kind in KINDS:
        for prompts in prompts_of(kind, decoder):
            logits, quality = prompts.answer(decoder, embedding)
            assert logits.shape == (len(prompts.targets), 4, decoder.mask_side, decoder.mask_side)
            assert quality.shape == logits.shape[:2]


@pytest.mark.parametrize('kind', ['point', 'box'])
def test_second_round_points_at_a_mistake_and_shows_the_answer(kind: str, decoder: SAMDecoder) -> None:
    prompts = prompts_of(kind, decoder)[0]
    # Wrong in one cell of each mask only.
    logits = 40 * prompts.targets - 20
    logits[:, 3, 5] *= -1
    again = prompts.corrected(logits, decoder.model, np.random.default_rng(0))
    side = decoder.model.image_size / decoder.mask_side
    assert torch.equal(again.points[:, -1], torch.tensor([5.5 * side, 3.5 * side]).expand(len(logits), 2))
    assert torch.equal(again.inside[:, -1], prompts.targets[:, 3, 5])
    assert torch.equal(again.mask[:, 0], logits)
    assert not again.ambiguous


def test_only_the_best_of_three_masks_learns_from_an_ambiguous_prompt() -> None:
    targets = torch.zeros(1, 8, 8)
    targets[:, :4] = 1
    logits = torch.randn(1, 4, 8, 8)
    logits[0, 2] = 4 * targets[0] - 2
    logits.requires_grad_()
    losses = prompt_losses(logits, torch.zeros(1, 4), targets, ambiguous=True)
    losses['mask'].backward()
    assert [bool(gradient.any()) for gradient in logits.grad[0]] == [False, False, True, False]
    assert losses['iou'] == 1


def test_clear_prompts_teach_the_first_mask() -> None:
    logits = torch.randn(2, 4, 8, 8, requires_grad=True)
    prompt_losses(logits, torch.zeros(2, 4), torch.ones(2, 8, 8), ambiguous=False)['mask'].backward()
    assert [bool(gradient.any()) for gradient in logits.grad[0]] == [True, False, False, False]


def test_quality_is_the_intersection_over_union() -> None:
    targets = torch.zeros(1, 4, 4)
    targets[:, :2] = 1
    logits = torch.full((1, 4, 4, 4), -9.0)
    logits[:, 0, :1] = 9
    assert prompt_losses(logits, torch.full((1, 4), 0.5), targets, ambiguous=False)['quality'] == 0
    assert prompt_losses(logits, torch.full((1, 4), 0.8), targets, ambiguous=False)['quality'] == pytest.approx(0.09)


def test_patches_that_resemble_their_region_agree() -> None:
    owners = torch.tensor([[0, 0, 1], [0, 1, 1], [2, -1, 1]])
    alike = torch.nn.functional.one_hot(owners.clamp(min=0), 3).permute(2, 0, 1).float()
    assert disagreement(alike, owners) < 0.01 < disagreement(torch.ones(3, 3, 3), owners)


def test_patches_on_borders_have_no_owner() -> None:
    regions = np.zeros((8, 8), np.uint8)
    regions[:, 5:] = 1
    assert patch_owners(regions, (2, 4)).tolist() == [[0, 0, -1, 1]] * 2


def test_correlation_of_a_scene_with_one_region_stays_within_it() -> None:
    image = split_of('val').scene(0).image
    features = SAMEncoder(TINY_SAM, checkpoint=False)(image, embed=False)
    assert share_within_regions(features, np.zeros(image.shape[:2], np.uint8)) == pytest.approx(1)


def test_training_that_was_cut_off_gives_the_weights_of_one_that_was_not(tmp_path: Path) -> None:
    train(tmp_path / 'whole.safetensors', tmp_path / 'whole', SETTINGS)
    task = SAMTask(SETTINGS, tmp_path)
    training = training_of(task, tmp_path / 'cut')

    def loss() -> tuple[torch.Tensor, dict[str, float]]:
        if training.step == 3:
            raise KeyboardInterrupt
        return task.loss()

    with pytest.raises(KeyboardInterrupt):
        training.run(loss, task.probe)
    train(tmp_path / 'cut.safetensors', tmp_path / 'cut', SETTINGS)
    assert (tmp_path / 'cut.safetensors').read_bytes() == (tmp_path / 'whole.safetensors').read_bytes()
    start = SAMTask(SETTINGS, tmp_path)
    trained = load_state_dict(tmp_path / 'whole.safetensors')
    before = original_names(start.encoder.network, start.decoder)
    moved = [name for name, tensor in before.items() if not tensor.half().equal(trained[name])]
    assert len(moved) > 0.8 * len(trained)


def test_trident_runs_with_the_file_that_training_writes(tmp_path: Path) -> None:
    path = tmp_path / 'sam.safetensors'
    train(path, tmp_path / 'work', SAMSettings(**{**vars(SETTINGS), 'steps': 1, 'every': 1}))
    state = load_state_dict(path)
    assert {tensor.dtype for tensor in state.values()} == {torch.float16}
    sam = {'model': TINY_SAM, 'checkpoint': path}
    host = ZOO['Trident with refinement'](sam=sam, refinement={'coarse_thresh': 0.0, 'minimal_area': 4})
    assert host.decoder.mask_decoder.iou_token.weight.equal(state['mask_decoder.iou_token.weight'].float())
    assert host.sam.network.blocks[1].mlp.fc1.weight.equal(state['image_encoder.blocks.1.mlp.lin1.weight'].float())
    (scores,) = host.score_maps(torch.randn(1, 3, 48, 64))
    assert scores.labels().shape == (48, 64)


def test_config_has_the_dimensions_that_are_trained() -> None:
    config = Config.fromfile(Path(__file__).parents[2] / 'configs' / '_base_' / 'miniature.py')
    assert SAMModel.of(config.miniature.sam.model) == SAMModel.of(SAMSettings().model)
