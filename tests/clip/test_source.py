"""CLIP models come from names, configs and files of every format; tag, model or option decide the activation."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import huggingface_hub.constants
import open_clip
import pytest
import safetensors.torch
import torch
from mmengine.config import ConfigDict
from open_clip.transformer import QuickGELU

from tests.helpers.golden import TOLERANCE, golden_file, load, tiny_clip
from tpa_mmseg.clip.source import CLIPSpec
from tpa_mmseg.encoders import PixelNormalization
from tpa_mmseg.encoders.clip_encoder import CLIPEncoder
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import CLIP

BACKBONES = {
    'ViT-B-16-quickgelu': (16, 512, QuickGELU),
    'ViT-L-14-quickgelu': (14, 768, QuickGELU),
    'ViT-H-14': (14, 1024, torch.nn.GELU),
}
IMAGE = torch.linspace(-2, 2, 3 * 64 * 64).view(1, 3, 64, 64).sin()


@pytest.fixture(autouse=True)
def weights_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty weights folder of the test's own, and no hub."""
    monkeypatch.setenv('TPA_WEIGHTS', str(tmp_path / 'weights'))
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', True)
    (tmp_path / 'weights').mkdir()
    return tmp_path / 'weights'


def features(source: CLIPSpec) -> torch.Tensor:
    tower = source.tower()
    with torch.no_grad():
        return tower.project(tower.trunk(IMAGE, leave=0))


@pytest.mark.parametrize('name', BACKBONES)
def test_named_backbones_are_built(name: str) -> None:
    patch, width, activation = BACKBONES[name]
    with torch.device('meta'), torch.no_grad():
        tower = CLIPSpec(name).tower()
        tokens = tower.project(tower.trunk(torch.empty(2, 3, 10 * patch + 5, 17 * patch), leave=0))
    assert tokens.shape == (2, 1 + 10 * 17, width)
    assert tower.patch_size == patch
    assert isinstance(tower.blocks[0].mlp.gelu, activation)


@pytest.mark.parametrize('name', BACKBONES)
def test_towers_of_named_backbones_have_the_weights_of_open_clip(name: str) -> None:
    with torch.device('meta'):
        model = open_clip.CLIP(**open_clip.get_model_config(name))
        source = CLIPSpec(name)
        visual, text = source.tower().visual, source.text_tower()
    shapes = {key: tensor.shape for key, tensor in model.state_dict().items() if key != 'logit_scale'}
    ours = {f'visual.{key}': tensor.shape for key, tensor in visual.state_dict().items()}
    ours |= {key: tensor.shape for key, tensor in text.state_dict().items()}
    assert ours == shapes


@pytest.mark.parametrize('form', ['safetensors', 'state dict', 'training checkpoint', 'half precision'])
def test_files_saved_by_open_clip_are_loaded(form: str, tmp_path: Path) -> None:
    model = open_clip.CLIP(**tiny_clip()).eval()
    path = tmp_path / ('clip.safetensors' if form == 'safetensors' else 'clip.pt')
    if form == 'safetensors':
        safetensors.torch.save_file(model.state_dict(), path)
    elif form == 'state dict':
        torch.save(model.state_dict(), path)
    elif form == 'training checkpoint':
        state = {f'module.{name}': tensor for name, tensor in model.state_dict().items()}
        torch.save({'epoch': 3, 'state_dict': state, 'name': 'run'}, path)
    else:
        torch.save(model.half().state_dict(), path)
        model.float()
    source = CLIPSpec(tiny_clip(), path)
    with torch.no_grad():
        torch.testing.assert_close(features(source)[:, 0], model.visual(IMAGE), atol=1e-5, rtol=0)
        tokens = source.tokenizer()(['a cat', 'a large dog'])
        torch.testing.assert_close(source.text_tower().encode_text(tokens), model.encode_text(tokens))


def test_models_with_their_own_text_class_are_loaded(tmp_path: Path) -> None:
    model = open_clip.CustomTextCLIP(**tiny_clip()).eval()
    safetensors.torch.save_file(model.state_dict(), tmp_path / 'clip.safetensors')
    source = CLIPSpec({**tiny_clip(), 'custom_text': True}, tmp_path / 'clip.safetensors')
    tokens = source.tokenizer()(['a cat'])
    with torch.no_grad():
        torch.testing.assert_close(features(source)[:, 0], model.visual(IMAGE), atol=1e-5, rtol=0)
        torch.testing.assert_close(source.text_tower().encode_text(tokens), model.encode_text(tokens))


def test_an_archive_that_is_a_program_is_refused(tmp_path: Path) -> None:
    """OpenAI published TorchScript archives, whose code runs when they are loaded."""
    with zipfile.ZipFile(tmp_path / 'tiny.pt', 'w') as archive:
        archive.writestr('tiny/code/__torch__.py', 'op_version_set = 1')
    with pytest.raises(TPAError, match=r'tiny\.pt is a TorchScript archive.*tpa weights download'):
        CLIPSpec(tiny_clip(), tmp_path / 'tiny.pt').tower()


def test_openais_own_weights_need_quickgelu(tmp_path: Path) -> None:
    """A GELU model would take them without a word."""
    state = {**open_clip.CLIP(**tiny_clip()).state_dict(), 'input_resolution': torch.tensor(64)}
    safetensors.torch.save_file({name: v.clone() for name, v in state.items()}, tmp_path / 'tiny.safetensors')
    with pytest.raises(TPAError, match=r'has weights of OpenAI, which need QuickGELU.*clip\.quick_gelu=True'):
        CLIPSpec(tiny_clip(gelu=True), tmp_path / 'tiny.safetensors').tower()
    CLIPSpec(tiny_clip(gelu=True), tmp_path / 'tiny.safetensors', quick_gelu=True).text_tower()


@pytest.mark.parametrize(
    ('model', 'tag', 'quick'),
    [
        ('ViT-B-16', 'openai', True),
        ('ViT-B/16', 'openai', True),
        ('ViT-L-14-quickgelu', 'openai', True),
        ('ViT-B-16', 'metaclip_fullcc', True),
        ('ViT-B-16', 'laion2b_s34b_b88k', False),
        ('ViT-H-14', 'laion2b_s32b_b79k', False),
    ],
)
def test_tag_of_the_weights_decides_the_activation(model: str, tag: str, quick: bool, weights_folder: Path) -> None:
    name = model.replace('/', '-').removesuffix('-quickgelu')
    (weights_folder / f'{name}.{tag}.safetensors').touch()
    source = CLIPSpec(model, tag)
    assert source.path.parent == weights_folder
    assert source.quick_gelu is quick


@pytest.mark.parametrize('name', ['b16_openai.safetensors', 'vit_base.openai/snapshots/open_clip_model.safetensors'])
def test_name_of_a_file_decides_nothing(name: str, clip_weights: Callable[[int], str], tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).symlink_to(clip_weights(16))
    assert not CLIPSpec(tiny_clip(gelu=True), tmp_path / name).quick_gelu
    assert CLIPSpec(tiny_clip(gelu=True), tmp_path / name, quick_gelu=True).quick_gelu


def test_option_decides_before_tag_and_model(weights_folder: Path) -> None:
    (weights_folder / 'ViT-B-16.openai.safetensors').touch()
    assert not CLIPSpec('ViT-B-16-quickgelu', 'openai', quick_gelu=False).quick_gelu
    assert CLIPSpec.of({'model': 'ViT-B-16', 'quick_gelu': True}).quick_gelu


def test_file_for_a_model_of_both_activations_is_warned_about(clip_weights: Callable[[int], str]) -> None:
    with pytest.warns(UserWarning, match=r"ViT-B-16 has GELU\. If .*, or clip\.model='ViT-B-16-quickgelu'"):
        assert not CLIPSpec('ViT-B-16', clip_weights(16)).quick_gelu
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert not CLIPSpec('ViT-B-16', clip_weights(16), quick_gelu=False).quick_gelu
        assert CLIPSpec('ViT-B-16-quickgelu', clip_weights(16)).quick_gelu
        assert not CLIPSpec(tiny_clip(gelu=True), clip_weights(16)).quick_gelu


def test_missing_weights_say_which_file_to_download(weights_folder: Path) -> None:
    with pytest.raises(TPAError) as error:
        CLIPSpec('ViT-B-16', 'openai')
    sentence = str(error.value)
    assert 'timm/vit_base_patch16_clip_224.openai' in sentence
    assert str(weights_folder / 'ViT-B-16.openai.safetensors') in sentence


@pytest.mark.parametrize(
    ('clip', 'sentence'),
    [
        ({'model': 'ViT-B-61'}, r"no model 'ViT-B-61'\. Did you mean ViT-B-16"),
        ({'model': 'ViT-B-16', 'pretrained': 'openia'}, r"a tag of ViT-B-16 \(openai, .* file, not 'openia'"),
        ({'model': tiny_clip(), 'pretrained': 'openai'}, "must be an existing weights file, not 'openai'"),
        ({'model': tiny_clip(), 'precision': 'half'}, "one of auto, float32, float16, bfloat16, not 'half'"),
        ({'model': tiny_clip(), 'quick_gelu': 'yes'}, "one of None, True, False, not 'yes'"),
        ({'model': {'embed_dim': 3}}, r'Missing in clip\.model: vision_cfg, text_cfg'),
        (
            {'name': 'ViT-B-16'},
            r'clip\.name is not an option\. Options: model, pretrained, precision, quick_gelu, compile',
        ),
        ({'pretrained': 'openai'}, 'clip has no model: set one'),
    ],
)
def test_wrong_clip_entries_are_refused_with_a_sentence(clip: dict, sentence: str) -> None:
    with pytest.raises(TPAError, match=sentence):
        CLIPSpec.of(clip)


def test_towers_that_are_no_plain_transformer_are_refused() -> None:
    with torch.device('meta'):
        for name in ('RN50', 'coca_ViT-B-32'):
            with pytest.raises(TPAError, match=f'{name} is not|of {name} is not'):
                CLIPSpec(name).tower()


def test_file_of_another_model_is_refused(clip_weights: Callable[[int], str], tmp_path: Path) -> None:
    with pytest.raises(TPAError, match='do not fit'):
        CLIPSpec(tiny_clip(patch=14), clip_weights(16)).tower()
    visual = safetensors.torch.load_file(clip_weights(16))
    visual = {name: tensor for name, tensor in visual.items() if name.startswith('visual.')}
    safetensors.torch.save_file(visual, tmp_path / 'visual.safetensors')
    with pytest.raises(TPAError, match='has no text tower'):
        CLIP({'model': tiny_clip(), 'pretrained': tmp_path / 'visual.safetensors'}, class_names=['cat'])


def test_configs_of_mmengine_are_understood(clip_weights: Callable[[int], str]) -> None:
    clip = ConfigDict(model=tiny_clip(), pretrained=clip_weights(16))
    torch.testing.assert_close(features(CLIPSpec.of(clip)), features(CLIPSpec(tiny_clip(), clip_weights(16))))


@pytest.mark.parametrize(('precision', 'tolerance'), [('float16', 0.02), ('bfloat16', 0.1)])
def test_reduced_precision_is_near_float32(
    precision: str, tolerance: float, clip_weights: Callable[[int], str]
) -> None:
    reference = features(CLIPSpec(tiny_clip(), clip_weights(16)))
    source = CLIPSpec(tiny_clip(), clip_weights(16), precision)
    tower = source.tower()
    # Some virtual machines announce matrix instructions for bfloat16 that they cannot execute; oneDNN would use them.
    with torch.backends.mkldnn.flags(enabled=False), torch.no_grad(), tower.autocast():
        reduced = tower.project(tower.trunk(IMAGE, leave=0))
    assert reduced.dtype == getattr(torch, precision)
    assert tower.visual.ln_pre(torch.ones(1, 64, dtype=reduced.dtype)).dtype == reduced.dtype
    error = (reduced.float() - reference).norm() / reference.norm()
    assert 0 < error < tolerance


def test_image_smaller_than_a_patch_is_refused(clip_weights: Callable[[int], str]) -> None:
    tower = CLIPSpec(tiny_clip(), clip_weights(16)).tower()
    with pytest.raises(TPAError, match='15 x 40 pixels is smaller than one patch of 16'):
        tower.embed(torch.zeros(1, 3, 15, 40))


def test_clip_encoder_gives_the_patches_of_the_plain_tower(clip_weights: Callable[[int], str]) -> None:
    golden = load(golden_file('clip_hosts', 'sclip_dense_vanilla_p16_64x64.npz'))['patch_features']
    image = load(golden_file('clip_hosts', 'images.npz'))['img_64x64']
    encoder = CLIPEncoder({'model': tiny_clip(), 'pretrained': clip_weights(16)})
    torch.testing.assert_close(encoder.dense(image).flatten(2).transpose(1, 2), golden, **TOLERANCE)
    mean, std = ([255 * value for value in values] for values in (encoder.mean.flatten(), encoder.std.flatten()))
    alone = encoder(image[0], PixelNormalization(tuple(mean), tuple(std), rgb=True))
    torch.testing.assert_close(alone.flatten(1).T[None], golden, **TOLERANCE)


def test_clip_encoder_is_named_by_its_model_and_weights(clip_weights: Callable[[int], str]) -> None:
    clip = {'model': tiny_clip(), 'pretrained': clip_weights(16)}
    same, other = CLIPEncoder(clip).fingerprint(), CLIPEncoder(clip, position='size').fingerprint()
    assert same == CLIPEncoder(ConfigDict(clip)).fingerprint() != other
