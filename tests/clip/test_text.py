"""Class names become unit vectors, once: the second run reads them from the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import open_clip
import pytest
import safetensors.torch
import torch

from tests.helpers.golden import TOLERANCE, golden_files, load, tiny_clip
from tpa_mmseg.clip.source import CLIPSpec
from tpa_mmseg.clip.text import IMAGENET_TEMPLATES, cache_dir, query_features, read_features
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import SCLIP

TEMPLATES = ('a photo of a {}.', 'a drawing of the {}.')


@pytest.fixture
def source(clip_weights: Callable[[int], str]) -> CLIPSpec:
    return CLIPSpec(tiny_clip(), clip_weights(16))


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of prompts in each call of a text tower."""
    calls, encode_text = [], open_clip.CLIP.encode_text

    def counted(self, text, *args, **kwargs):
        calls.append(len(text))
        return encode_text(self, text, *args, **kwargs)

    monkeypatch.setattr(open_clip.CLIP, 'encode_text', counted)
    return calls


@pytest.mark.parametrize('path', golden_files('clip_hosts', '*clip_text.npz'), ids=lambda path: path.stem)
def test_tokens_and_query_features_are_those_of_the_original(path: Path, source: CLIPSpec) -> None:
    golden = load(path)
    words = golden['words'].tolist()
    prompts = [template.replace('{}', word) for word in words for template in IMAGENET_TEMPLATES]
    tokens = source.tokenizer()(prompts).view(len(words), len(IMAGENET_TEMPLATES), -1)
    assert torch.equal(tokens.int(), golden['tokens'])
    torch.testing.assert_close(query_features(source, words), golden['query_features'], **TOLERANCE)


def test_second_run_encodes_nothing(source: CLIPSpec, encoded: list[int]) -> None:
    first = query_features(source, ['cat', 'dog'], TEMPLATES)
    assert sum(encoded) == 4
    second = query_features(source, ['cat', 'dog'], TEMPLATES)
    assert sum(encoded) == 4
    assert torch.equal(first, second)


@pytest.mark.parametrize('change', ['names', 'templates', 'weights', 'activation'])
def test_cache_belongs_to_names_templates_and_model(
    change: str, source: CLIPSpec, encoded: list[int], tmp_path: Path
) -> None:
    query_features(source, ['cat', 'dog'], TEMPLATES)
    before = sum(encoded)
    names, templates = ['cat', 'dog'], TEMPLATES
    if change == 'names':
        names = ['dog', 'cat']
    elif change == 'templates':
        templates = TEMPLATES[::-1]
    elif change == 'activation':
        source = CLIPSpec(tiny_clip(gelu=True), source.path)
    else:
        state = safetensors.torch.load_file(source.path)
        state['ln_final.bias'] += 0.1
        safetensors.torch.save_file(state, tmp_path / 'other.safetensors')
        source = CLIPSpec(tiny_clip(), tmp_path / 'other.safetensors')
    query_features(source, names, templates)
    assert sum(encoded) == 2 * before


@pytest.mark.parametrize('planted', ['shape', 'type', 'infinite', 'shared folder'])
def test_planted_features_are_not_used(planted: str, source: CLIPSpec, encoded: list[int]) -> None:
    features = query_features(source, ['cat', 'dog'], TEMPLATES)
    (path,) = cache_dir().glob('*.safetensors')
    fake = {'shape': features[:1], 'type': features.double(), 'infinite': features / 0}.get(planted, -features)
    checksum = hashlib.sha256(fake.numpy().tobytes()).hexdigest()
    path.write_bytes(safetensors.torch.save({'text_features': fake.contiguous()}, metadata={'sha256': checksum}))
    if planted == 'shared folder':
        cache_dir().chmod(0o777)
    assert torch.equal(query_features(source, ['cat', 'dog'], TEMPLATES), features)
    assert sum(encoded) == 8
    assert cache_dir().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize('damage', ['cut', 'flip', 'empty'])
def test_damaged_cache_is_made_anew(damage: str, source: CLIPSpec, encoded: list[int]) -> None:
    features = query_features(source, ['cat', 'dog'], TEMPLATES)
    (path,) = cache_dir().glob('*.safetensors')
    content = bytearray(path.read_bytes())
    if damage == 'flip':
        content[-1] ^= 1
    path.write_bytes({'cut': content[:-9], 'flip': content, 'empty': b''}[damage])
    assert torch.equal(query_features(source, ['cat', 'dog'], TEMPLATES), features)
    assert sum(encoded) == 8
    assert torch.equal(query_features(source, ['cat', 'dog'], TEMPLATES), features)
    assert sum(encoded) == 8


def test_cache_that_cannot_be_written_does_not_stop_a_run(
    source: CLIPSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'file').write_text('not a folder')
    monkeypatch.setenv('TPA_CACHE', str(tmp_path / 'file'))
    assert query_features(source, ['cat'], TEMPLATES).shape == (1, 32)


def test_a_short_context_changes_nothing(source: CLIPSpec) -> None:
    """Prompts are cut to the longest of them before they are encoded."""
    tower, names = source.text_tower(), ['cat', 'a rather long name of a class']
    tokens = source.tokenizer()([TEMPLATES[0].replace('{}', name) for name in names])
    with torch.no_grad():
        whole = torch.nn.functional.normalize(tower.encode_text(tokens), dim=-1)
    torch.testing.assert_close(query_features(source, names, TEMPLATES[:1]), whole, atol=1e-6, rtol=0)


def test_host_keeps_no_text_tower(source: CLIPSpec) -> None:
    host = SCLIP({'model': tiny_clip(), 'pretrained': source.path}, class_names=['cat', 'dog'])
    assert not any('token_embedding' in name for name, _ in host.named_parameters())
    assert host.text_features.shape == (2, 32)


def test_wrong_number_of_names_is_refused(clip_weights: Callable[[int], str]) -> None:
    clip = {'model': tiny_clip(), 'pretrained': clip_weights(16)}
    with pytest.raises(TPAError, match=r'num_classes is 3, but 2 classes are given \(2 classes: cat / dog\)'):
        SCLIP(clip, class_names=['cat', 'dog'], num_classes=3)
    with pytest.raises(TPAError, match='needs class names: set class_names or text_features'):
        SCLIP(clip)


def test_threshold_without_background_is_warned_about(clip_weights: Callable[[int], str]) -> None:
    clip = {'model': tiny_clip(), 'pretrained': clip_weights(16)}
    with pytest.warns(UserWarning, match="class 0, 'aeroplane', which does not look like a background"):
        SCLIP(clip, class_names=['aeroplane', 'bird'], prob_thd=0.1)


@pytest.mark.filterwarnings('error::UserWarning')
@pytest.mark.parametrize('background', ['background', ('sky', 'wall')])
def test_threshold_with_background_is_not_warned_about(background, clip_weights: Callable[[int], str]) -> None:
    SCLIP({'model': tiny_clip(), 'pretrained': clip_weights(16)}, class_names=[background, 'bird'], prob_thd=0.1)


@pytest.mark.parametrize('suffix', ['npz', 'safetensors'])
def test_ready_made_features_come_from_a_file(suffix: str, tmp_path: Path) -> None:
    arrays = {'text_features': torch.randn(3, 32), 'query_to_class': torch.tensor([0, 0, 1])}
    path = tmp_path / f'features.{suffix}'
    if suffix == 'npz':
        np.savez(path, **arrays)
    else:
        safetensors.torch.save_file(arrays, path)
    features, classes = read_features(path)
    assert classes == [0, 0, 1]
    torch.testing.assert_close(features, torch.nn.functional.normalize(arrays['text_features'], dim=1))


def test_unusable_ready_made_features_are_refused(tmp_path: Path, clip_weights: Callable[[int], str]) -> None:
    np.savez(tmp_path / 'other.npz', something=np.zeros(3))
    clip = {'model': tiny_clip(), 'pretrained': clip_weights(16)}
    with pytest.raises(TPAError, match='has no array .text_features., only something'):
        read_features(tmp_path / 'other.npz')
    with pytest.raises(TPAError, match='Cannot read text features from'):
        read_features(tmp_path / 'missing.npz')
    with pytest.raises(TPAError, match='has 16 channels, but the image features have 32: use text'):
        SCLIP(clip, text_features=torch.randn(2, 16))
    with pytest.raises(TPAError, match='text_features has 2 queries, but there are 3 class names'):
        SCLIP(clip, text_features=torch.randn(2, 32), class_names=['a', 'b', 'c'])
    with pytest.raises(TPAError, match='every class from 0 to 2'):
        SCLIP(clip, text_features=torch.randn(2, 32), query_to_class=[0, 2])
