"""Trident gives the numbers of its original implementation."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mmseg.structures import SegDataSample

from tests.helpers import vfm_golden
from tests.helpers.golden import TOLERANCE, golden_file, load, save_weights
from tests.helpers.vfm_golden import FOLDER, PREPROCESSOR, Case, assert_like, cases, shared, vit
from tests.helpers.zoo import ZOO, images
from tpa_mmseg.core import QueryScores, ScoreMap
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import Trident
from tpa_mmseg.hosts.trident import refinement as sam_refinement
from tpa_mmseg.hosts.trident.correlation import mix
from tpa_mmseg.hosts.trident.refined_scores import RefinedScores
from tpa_mmseg.hosts.trident.regions import find_regions

ATTENTION, FULL = 'trident_attn.npz', 'trident_full.npz'
CLIP_OF = {'h14': 'h14'}
# Python's own numbers instead of the rounded copies in the files.
COS_FAC = {'b16_neg': 12.0, 'b16_cos0': 0.0, 'b16_nothr': 0.0, 'city': 3.0}
REFINE_NEG_COS = {'b16_neg': False, 'city': False}
TINY_SAM = {
    'embed_dim': 24,
    'depth': 2,
    'num_heads': 3,
    'global_attn_indexes': (1,),
    'prompt_dim': 32,
    'decoder_heads': 4,
    'decoder_mlp': 64,
    'iou_hidden': 32,
}
SMALL_SAM = {'model': {**TINY_SAM, 'image_size': 64, 'window_size': 3}, 'checkpoint': False}


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('weights')


def golden_weights(name: str, folder: Path) -> str:
    return save_weights(load(golden_file(FOLDER, f'{name}.npz')), folder / f'{name}.safetensors')


def tiny_host(folder: Path, case: str = '', **options) -> Trident:
    """A host with the CLIP of a golden case and its options, and random weights elsewhere."""
    defaults = {
        'clip': vfm_golden.clip(CLIP_OF.get(case, 'b16'), folder),
        'text_features': torch.randn(7, 32),
        'proxy': vit(16, False),
        'sam': SMALL_SAM,
        'slide_crop': 112,
        'slide_stride': 112,
        'cos_fac': COS_FAC.get(case, 1.2),
        'refine_neg_cos': REFINE_NEG_COS.get(case, True),
        'halves': case == 'city',
    }
    return Trident(**{**defaults, **options})


@pytest.mark.parametrize('case', vfm_golden.available(ATTENTION, CLIP_OF))
@torch.no_grad()
def test_splicing_and_correlation_are_those_of_the_original(case: str, folder: Path) -> None:
    golden = cases(ATTENTION)[case]
    crop, stride = golden['crop_stride'].tolist()
    size, proxy = tuple(golden['image'].shape[-2:]), golden['proxy']
    # The features of the proxy are given, of another width than those of any network here.
    patch = crop // proxy.shape[-1]
    host = tiny_host(folder, case, proxy=vit(patch, False), slide_crop=crop, slide_stride=stride)
    host.proxy.dim = proxy.shape[1]
    windows = torch.stack(host.sliding.cut(golden['image'][0]))
    canvas = host.splice(list(torch.cat((host.values(windows, tuple(proxy.shape[-2:])), proxy), 1)), size)
    middle = canvas.shape[2] // 2
    pieces = [canvas[..., :middle], canvas[..., middle:]] if host.halves else [canvas]
    mixed = []
    for half, piece in enumerate(pieces):
        values, attention = golden[f'sam_v{half}'][0], golden[f'sam_attn{half}'][0]
        grid = tuple(values.shape[1:3])
        attention = attention.unflatten(2, grid).unflatten(1, grid)
        bands = [(0, 2), (2, grid[0])]
        resized = F.interpolate(piece[None], grid, mode='bilinear')[0]
        mixed.append(
            mix(resized, values, lambda a, b, rows=attention: rows[:, a:b], bands, host.cos_fac, host.refine_neg_cos)
        )
    features = host.tower.project(torch.cat(mixed, 2).flatten(1).T[None])
    torch.testing.assert_close(features, golden['feats'], **TOLERANCE)


def predict(case: str, golden: Case, folder: Path, **options) -> tuple[Trident, ScoreMap]:
    """Runs a complete golden case, from the image file on."""
    crop, stride = golden['crop_stride'].tolist()
    host = tiny_host(
        folder,
        case,
        text_features=golden['text'],
        query_to_class=shared(FULL, 'query_idx').tolist(),
        proxy=vit(16, golden_weights('tiny_dino16', folder)),
        sam={'model': TINY_SAM, 'checkpoint': golden_weights('tiny_sam', folder)},
        slide_crop=crop,
        slide_stride=stride,
        prob_thd=round(float(golden['prob_thd']), 6),
        data_preprocessor=PREPROCESSOR,
        **options,
    )
    file = folder / f'{case}.png'
    cv2.imwrite(str(file), golden['rgb'].numpy()[..., ::-1])
    data = vfm_golden.as_data(golden['input_rgb'], golden['rgb'].shape[:2], img_path=str(file))
    with torch.no_grad():
        (scores,) = host.score_maps(**host.data_preprocessor(data))
    return host, scores


def refinement_of(golden: Case) -> dict | None:
    """The options of a case's refinement, None where it has none."""
    if 'thresholds' not in golden:
        return None
    coarse_thresh, area, mask_coff, iou_thresh = (round(float(value), 6) for value in golden['thresholds'])
    return {
        'coarse_thresh': coarse_thresh,
        'minimal_area': int(area),
        'mask_coff': mask_coff,
        'iou_thresh': iou_thresh,
    }


@pytest.mark.parametrize('case', vfm_golden.available(FULL, CLIP_OF))
def test_prediction_is_that_of_the_original(case: str, folder: Path) -> None:
    golden = cases(FULL)[case]
    host, scores = predict(case, golden, folder, refinement=refinement_of(golden))
    refined, coarse = (scores, scores.coarse) if host.refinement else (None, scores)
    # Cosines that equal their threshold up to rounding mix or do not mix: a few patches differ from processor to
    # processor, with the original implementation too.
    if 'raw_logits' in golden:
        assert_nearly_like(coarse.source.rows(0, coarse.size[0]) / host.logit_scale, golden['raw_logits'], 1e-4, 1e-3)
    assert_nearly_like(coarse.probabilities() * coarse.mass, golden['coarse_probs'], 1e-3, 2e-2)
    assert (coarse.labels() == golden['coarse_pred']).float().mean() >= 0.999
    if refined is not None:
        # The original's score map is zero where nothing was refined.
        stored, everywhere = golden['refined_logits'], golden['coarse_probs']
        expected = torch.where(stored.sum(0) > 0, stored, everywhere)
        assert_nearly_like(refined.probabilities() * refined.mass, expected, 1e-3, 2e-2)
        assert (refined.labels() == golden['refined_pred']).float().mean() >= 0.999
        changed = (refined.labels() != coarse.labels()).float().mean()
        assert changed > 0.1, 'the refinement changes labels in every golden case'


@pytest.mark.parametrize('case', [case for case, golden in cases(FULL).items() if 'low_res_first' in golden])
@torch.no_grad()
def test_prompts_and_answers_are_those_of_the_original(case: str, folder: Path) -> None:
    golden = cases(FULL)[case]
    host, scores = predict(case, golden, folder, refinement=refinement_of(golden))
    half, labels = sam_refinement._at_half_size(scores.coarse, host.refinement)
    found = list(find_regions(*sam_refinement._read(half, labels), host.refinement.minimal_area))
    assert [len(regions.points) for regions in found] == golden['prompt_counts'].tolist()
    prompts = [
        sam_refinement.region_prompts(regions, half[regions.label], scores.size, host.decoder, host.refinement)
        for regions in found
    ]
    points, boxes = (torch.cat([prompt[i] for prompt in prompts]) for i in (0, 1))
    torch.testing.assert_close(points, golden['prompt_points'], atol=1e-3, rtol=0)
    torch.testing.assert_close(boxes, golden['prompt_boxes'], atol=1e-3, rtol=0)
    assert_like(prompts[0][2], golden['mask_input_first'], 1e-5)
    pixels = host.sam_image(torch.zeros(3, 1, 1), sample_of(folder / f'{case}.png', scores.size), scores.size)
    embedding = host.sam(pixels, embed=True).embedding
    masks, quality = zip(*(host.decoder(embedding, *prompt) for prompt in prompts), strict=True)
    assert_like(masks[0][0], golden['low_res_first'], 1e-3)
    torch.testing.assert_close(torch.cat(quality), golden['iou_pred'], **TOLERANCE)
    # The prompt that SAM was trained with gives other answers.
    proper = host.decoder(embedding, *prompts[0][:2], prompts[0][2][None])[1]
    assert (proper - quality[0]).abs().max() > 1e-3


def sample_of(file: Path, size: tuple[int, int]) -> SegDataSample:
    return SegDataSample(metainfo={'img_path': str(file), 'ori_shape': size})


def assert_nearly_like(found: torch.Tensor, stored: torch.Tensor, atol: float, worst: float) -> None:
    """All but one in a hundred within ``atol``, and those within ``worst``."""
    assert_like(found, stored, worst)
    step = -(-found.shape[-1] // stored.shape[-1])
    near = (found[..., ::step, ::step] - stored).abs() <= atol
    assert near.float().mean() >= 0.99


def test_image_is_brought_to_whole_patches_and_at_least_one_window(folder: Path) -> None:
    host = tiny_host(folder)
    as_it_is = torch.randn(3, 96, 160)
    assert host.fit(as_it_is) is as_it_is
    # 187 becomes 192, 131 * 192 / 187 = 134.5 becomes 144.
    assert host.fit(torch.randn(3, 131, 187)).shape == (3, 144, 192)
    assert host.fit(torch.randn(3, 50, 187)).shape == (3, 112, 192)


@torch.no_grad()
def test_windows_are_averaged_where_they_overlap(folder: Path) -> None:
    host = tiny_host(folder, slide_stride=64)
    (window,) = host.window_maps(torch.randn(1, 3, 112, 112))
    alone = host.splice([window], (112, 112))
    # Twice the same window has the mean cosine of one.
    twice = host.splice([window, window], (112, 176))
    assert twice.shape == (64, 7, 11)
    expected = torch.cat((alone[..., :4], (alone[..., 4:] + alone[..., :3]) / 2, alone[..., 3:]), 2)
    torch.testing.assert_close(twice, expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_mean_cosine_is_that_of_all_windows_together(folder: Path) -> None:
    host = tiny_host(folder, slide_stride=112)
    windows = torch.randn(2, 64 + 32, 7, 7)
    windows[1, 64:] += 0.5
    together = host.splice(list(windows), (112, 224))
    alone = torch.cat([host.splice([window], (112, 112)) for window in windows], 2)
    assert together.shape == alone.shape and (together - alone).abs().max() > 1e-3


def test_sam_sees_the_file_where_there_is_one(folder: Path) -> None:
    host = tiny_host(folder)
    rgb = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    cv2.imwrite(str(folder / 'file.png'), rgb[..., ::-1])
    inputs = torch.zeros(3, 112, 140)
    found = host.sam_image(inputs, sample_of(folder / 'file.png', (40, 50)), (40, 50))
    assert np.array_equal(found, cv2.resize(rgb, (64, 48)))
    # Without a file it is the input: zeros are the mean of CLIP's images.
    gray = np.round(255 * np.array(host.statistics[0])).astype(np.uint8)
    assert (host.sam_image(inputs, None, (40, 50)) == gray).all()


@pytest.mark.parametrize('case', ['missing', 'not an image', 'another size'])
def test_a_file_that_does_not_fit_is_not_used(case: str, tmp_path: Path, folder: Path) -> None:
    file = tmp_path / 'file.png'
    if case == 'not an image':
        file.write_text('not an image')
    if case == 'another size':
        cv2.imwrite(str(file), np.zeros((20, 20, 3), np.uint8))
    with pytest.warns(UserWarning, match="the network's input is used instead"):
        tiny_host(folder).sam_image(torch.zeros(3, 112, 140), sample_of(file, (40, 50)), (40, 50))


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        ({'slide_crop': 120}, "slide_crop must be a multiple of CLIP's patch, 16, and the proxy's, 16, not 120"),
        ({'slide_crop': 112, 'proxy': vit(32, False)}, "the proxy's, 32, not 112"),
        ({'slide_stride': 40}, "slide_stride must be a multiple of CLIP's patch, 16, not 40"),
        ({'padding': 56}, 'cannot pad them'),
        ({'refinement': {'iou': 0.9}}, 'refinement.iou is not an option of Refinement. Options: coarse_thresh, '),
        ({'refinement': {'mask_prompt': '2d'}}, "refinement.mask_prompt must be '3d' or '4d', not '2d'"),
        ({'refinement': {}, 'area_thd': 0.1}, 'area_thd cannot be combined with refinement'),
        ({'sam': {'model': 'vit_x'}}, 'sam.model must be one of vit_b, vit_l, vit_h'),
        ({'sam': {'model': 'vit_b', 'weights': 'x'}}, 'sam.weights is not an option. Options: '),
        ({'sam': {'model': 'vit_b', 'precision': 'int8'}}, 'sam.precision must be one of'),
        ({'sam': {'model': {'depth': 3}}}, 'sam.model.embed_dim is missing: SAMModel needs an integer'),
        ({'sam': {'model': TINY_SAM}}, 'set sam.checkpoint to a file'),
        ({'sam': {'model': {**TINY_SAM, 'depth': 3}}}, 'global_attn_indexes must contain the last block, 2'),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict, sentence: str, folder: Path) -> None:
    with pytest.raises(TPAError, match=sentence):
        tiny_host(folder, **options)


def test_a_missing_checkpoint_is_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TPA_WEIGHTS', str(tmp_path))
    missing = f'SAM checkpoint not found: {tmp_path}/sam_vit_l_0b3195.pth'
    with pytest.raises(TPAError, match=rf'{missing}. Download http\S+/sam_vit_l_0b3195\.pth and save it there'):
        tiny_host(folder, sam={'model': 'vit_l'})
    with pytest.raises(TPAError, match=r'SAM checkpoint not found: elsewhere.pth. Download http\S+/sam_vit_b_01ec64'):
        tiny_host(folder, sam={'checkpoint': 'elsewhere.pth'})


def test_the_missing_package_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'segment_anything.modeling', None)
    tiny_host(folder)
    with pytest.raises(TPAError, match='requires the package segment_anything: run pip install segment-anything-py'):
        tiny_host(folder, refinement={})


def test_a_checkpoint_without_a_decoder_is_refused(folder: Path) -> None:
    state = {k: v for k, v in load(golden_file(FOLDER, 'tiny_sam.npz')).items() if k.startswith('image_encoder.')}
    sam = {'model': TINY_SAM, 'checkpoint': save_weights(state, folder / 'encoder.safetensors')}
    tiny_host(folder, sam=sam)
    with pytest.raises(TPAError, match='do not fit the mask decoder of SAM .*is missing'):
        tiny_host(folder, sam=sam, refinement={})


@torch.no_grad()
def test_coarse_scores_stay_where_no_mask_is_good_enough(folder: Path) -> None:
    torch.manual_seed(0)
    host = tiny_host(folder, refinement={'coarse_thresh': 0.0, 'minimal_area': 1, 'iou_thresh': 100.0})
    (scores,) = host.score_maps(torch.randn(1, 3, 112, 112))
    assert isinstance(scores, QueryScores)


def test_fingerprint_knows_the_refinement(folder: Path) -> None:
    def fingerprint(**options) -> dict:
        torch.manual_seed(0)
        return tiny_host(folder, **options).fingerprint()

    plain, refined = fingerprint(), fingerprint(refinement={})
    assert plain['refinement'] is None and refined['refinement']['mask_prompt'] == '3d'
    assert fingerprint(refinement={'mask_prompt': '4d'}) != refined
    # Anchors depend on the threshold only through the regions.
    assert fingerprint(prob_thd=0.3)['refinement'] is None
    assert fingerprint(prob_thd=0.3, refinement={}) != refined


@torch.no_grad()
def test_the_contract_is_checked_with_refined_scores() -> None:
    for name in ('Trident with refinement', 'Trident with refinement of halves'):
        (scores,) = ZOO[name]().score_maps(images((48, 64)))
        assert isinstance(scores, RefinedScores)
        assert 0.2 < scores.refined.float().mean() < 1
