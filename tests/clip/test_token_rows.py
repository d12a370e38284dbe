"""A CLIP file may hold only the word pieces that its model was trained with."""

from __future__ import annotations

from pathlib import Path

import open_clip
import pytest
import safetensors.torch
import torch

from tests.helpers.golden import tiny_clip
from tpa_mmseg.clip.source import CLIPSpec
from tpa_mmseg.clip.token_rows import keep_rows
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import SCLIP

KNOWN = ['a photo of a cat.', 'a photo of a large dog!']


def write(path: Path, model: torch.nn.Module, **changes) -> Path:
    """The model's file with only the word pieces of :data:`KNOWN`, and with other tensors where ``changes`` says so."""
    state = keep_rows(model.state_dict(), open_clip.SimpleTokenizer()(KNOWN).flatten())
    safetensors.torch.save_file({**state, **changes}, path)
    return path


@pytest.fixture
def model() -> open_clip.CLIP:
    return open_clip.CLIP(**tiny_clip()).eval()


def test_known_words_have_the_features_of_the_whole_file(model: open_clip.CLIP, tmp_path: Path) -> None:
    source = CLIPSpec(tiny_clip(), write(tmp_path / 'clip.safetensors', model))
    tokens = source.tokenizer()(KNOWN)
    with torch.no_grad():
        torch.testing.assert_close(source.text_tower().encode_text(tokens), model.encode_text(tokens))


def test_the_file_is_as_small_as_its_words(model: open_clip.CLIP, tmp_path: Path) -> None:
    path = write(tmp_path / 'clip.safetensors', model)
    whole = 4 * sum(tensor.numel() for tensor in model.state_dict().values())
    assert path.stat().st_size < whole / 5


def test_text_towers_in_a_module_of_their_own_have_known_words_too(tmp_path: Path) -> None:
    model = open_clip.CustomTextCLIP(**tiny_clip()).eval()
    source = CLIPSpec({**tiny_clip(), 'custom_text': True}, write(tmp_path / 'clip.safetensors', model))
    tokens = source.tokenizer()(KNOWN)
    with torch.no_grad():
        torch.testing.assert_close(source.text_tower().encode_text(tokens), model.encode_text(tokens))


def test_a_host_takes_known_class_names_and_names_an_unknown_one(model: open_clip.CLIP, tmp_path: Path) -> None:
    clip = {'model': tiny_clip(), 'pretrained': write(tmp_path / 'clip.safetensors', model)}
    host = SCLIP(clip, class_names=['cat', 'large dog'], templates=['a photo of a {}.'])
    assert host.text_features.shape == (2, 32)
    with pytest.raises(TPAError, match=r"does not know 'horse' in 'a photo of a horse\.'"):
        SCLIP(clip, class_names=['cat', 'horse'], templates=['a photo of a {}.'])


def test_padding_is_no_word_although_it_has_the_number_of_one(model: open_clip.CLIP, tmp_path: Path) -> None:
    state = keep_rows(model.state_dict(), open_clip.SimpleTokenizer()(['a cat'])[0, :4])
    assert 0 not in state['token_embedding.rows']
    safetensors.torch.save_file(state, tmp_path / 'clip.safetensors')
    tokenizer = CLIPSpec(tiny_clip(), tmp_path / 'clip.safetensors').tokenizer()
    assert tokenizer('a cat').shape == (1, 77)
    with pytest.raises(TPAError, match="does not know '!'"):
        tokenizer(['a cat !'])


@pytest.mark.parametrize(
    'rows', [[0, 1], [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 49408], [-1, *range(10)]]
)
def test_rows_that_make_no_sense_are_refused(model: open_clip.CLIP, tmp_path: Path, rows: list[int]) -> None:
    path = write(tmp_path / 'clip.safetensors', model, **{'token_embedding.rows': torch.tensor(rows)})
    with pytest.raises(TPAError, match=r'clip\.safetensors: token_embedding\.rows must name each row'):
        CLIPSpec(tiny_clip(), path).text_tower()
