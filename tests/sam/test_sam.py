"""SAM's encoder is that of the original implementation, in a fraction of the memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.helpers.golden import golden_file, load, save_weights
from tpa_mmseg.sam import attention as sam_attention
from tpa_mmseg.sam.attention import GlobalAttention
from tpa_mmseg.sam.decoder import SAMDecoder
from tpa_mmseg.sam.encoder import SAMEncoder
from tpa_mmseg.sam.model import SAMModel

# The model of vfm.npz.
MODEL = {
    'embed_dim': 32,
    'depth': 3,
    'num_heads': 2,
    'global_attn_indexes': (2,),
    'window_size': 4,
    'image_size': 160,
    'prompt_dim': 24,
}


@pytest.fixture(scope='module')
def golden() -> dict:
    arrays = load(golden_file('vfm_hosts', 'vfm.npz'))
    return {name.removeprefix('sam/'): array for name, array in arrays.items() if name.startswith('sam/')}


@pytest.fixture(scope='module')
def checkpoint(golden: dict, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a whole SAM, as far as the encoder goes."""
    state = {f'image_encoder.{n.removeprefix("w/")}': v for n, v in golden.items() if n.startswith('w/')}
    return save_weights(state, tmp_path_factory.mktemp('sam') / 'sam.safetensors')


@pytest.mark.parametrize('rows_at_once', [1, 3, 10])
@torch.no_grad()
def test_attention_and_values_of_the_last_block_are_those_of_the_original(
    golden: dict, checkpoint: str, rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sam_attention._CHUNK_ELEMENTS, 'cpu', rows_at_once * 2 * 10 * 100)
    network = SAMEncoder(MODEL, checkpoint).network
    tokens = network.patch_embed(golden['image']) + network.pos_embed
    for block in network.blocks[:2]:
        tokens = block(tokens)
    last = network.blocks[2]
    attention = GlobalAttention.of(last.attn, last.norm1(tokens))
    assert len(list(attention.bands())) == -(-10 // rows_at_once)
    weights = torch.cat([attention.weights(*band).flatten(3).flatten(1, 2) for band in attention.bands()], 1)
    torch.testing.assert_close(weights, golden['last_attn'], atol=1e-4, rtol=0)
    torch.testing.assert_close(attention.values[None], golden['last_v'], atol=1e-4, rtol=0)
    torch.testing.assert_close(last.attn.proj(attention.mix()), last.attn(last.norm1(tokens)), atol=1e-5, rtol=0)


@torch.no_grad()
def test_embedding_is_that_of_the_whole_network(checkpoint: str) -> None:
    encoder, image = SAMEncoder(MODEL, checkpoint), np.random.default_rng(0).integers(0, 256, (75, 100, 3), np.uint8)
    features = encoder(image, embed=True)
    assert (features.frame, features.grid, features.image_size) == ((120, 160), (7, 10), (75, 100))
    expected = encoder.network.forward_features(encoder.prepare(image, features.frame))
    torch.testing.assert_close(features.embedding, expected, atol=1e-5, rtol=0)
    assert encoder(image, embed=False).embedding is None


def test_input_is_that_of_the_original(checkpoint: str) -> None:
    modeling = pytest.importorskip('segment_anything.utils.transforms')
    encoder, image = SAMEncoder(MODEL, checkpoint), np.random.default_rng(0).integers(0, 256, (75, 103, 3), np.uint8)
    resized = modeling.ResizeLongestSide(160).apply_image(image)
    pixels = torch.from_numpy(resized).permute(2, 0, 1)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)))
    found = encoder.prepare(image, encoder.model.frame((75, 103)))[0]
    assert torch.equal(found[:, : resized.shape[0], : resized.shape[1]], (pixels - mean) / std)
    assert not found[:, resized.shape[0] :].any()


@pytest.mark.parametrize('precision', ['float16', 'bfloat16'])
def test_reduced_precision_gives_nearly_the_same_in_float32(checkpoint: str, precision: str) -> None:
    image = np.random.default_rng(0).integers(0, 256, (75, 100, 3), np.uint8)
    exact = SAMEncoder(MODEL, checkpoint)(image, embed=True)
    with torch.backends.mkldnn.flags(enabled=False):
        reduced = SAMEncoder(MODEL, checkpoint, precision)(image, embed=True)
    for found, expected in (
        (reduced.embedding, exact.embedding),
        (reduced.attention.values, exact.attention.values),
        (reduced.attention.weights(0, 2), exact.attention.weights(0, 2)),
    ):
        assert found.dtype == torch.float32
        assert 0 < (found - expected).abs().mean() < 0.1 * expected.abs().mean()


def test_published_models_have_the_published_dimensions() -> None:
    models = {name: SAMModel.of(name) for name in ('vit_b', 'vit_l', 'vit_h')}
    with torch.device('meta'):
        weights = {name: sum(p.numel() for p in model.network().parameters()) for name, model in models.items()}
    # Millions of weights of the image encoders, as the paper gives them for the whole models: 91, 308, 636.
    assert {name: round(count / 1e6) for name, count in weights.items()} == {'vit_b': 90, 'vit_l': 308, 'vit_h': 637}
    assert [model.grid for model in models.values()] == [64, 64, 64]
    assert models['vit_b'].frame((375, 500)) == (768, 1024)
    assert models['vit_b'].frame((375, 500), 256) == (192, 256)


@pytest.mark.parametrize('name', ['vit_b', 'vit_l', 'vit_h'])
def test_published_checkpoints_fit_encoder_and_decoder(name: str) -> None:
    segment_anything = pytest.importorskip('segment_anything')
    model = SAMModel.of(name)
    with torch.device('meta'):
        published = segment_anything.sam_model_registry[name]().state_dict()
        encoder, decoder = model.network(), SAMDecoder(model, None)
    ours = {f'image_encoder.{key.replace("mlp.fc", "mlp.lin")}': v.shape for key, v in encoder.state_dict().items()}
    ours |= {key: v.shape for key, v in decoder.state_dict().items()}
    assert ours == {key: v.shape for key, v in published.items()}
