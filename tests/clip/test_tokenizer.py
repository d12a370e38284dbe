"""A CLIP file may name the few words that its model was trained with."""

from __future__ import annotations

import json
from pathlib import Path

import open_clip
import pytest
import safetensors.torch
import torch
from tpa_tools.miniature_training.captions import TEMPLATES, vocabulary

from tests.helpers.golden import tiny_clip
from tests.helpers.world import ROOT
from tpa_mmseg.clip.source import CLIPSpec
from tpa_mmseg.clip.tokenizer import WordTokenizer, stored_words
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import SCLIP

PROMPTS = ['a photo of a cat.', 'a photo of a large checkerboard.']
#: Rows of the words; 'checkerboard' has two pieces. Row 0 is padding, 9 and 10 are start and end.
WORDS = {'a': [1], 'photo': [2], 'of': [3], 'cat': [4], 'large': [5], 'checkerboard': [6, 7], '.': [8]}
ROWS = 11


def config(**changes) -> dict:
    """The tiny CLIP with an embedding for the words above only."""
    clip = tiny_clip()
    return {**clip, 'text_cfg': {**clip['text_cfg'], 'vocab_size': ROWS}, **changes}


def write(folder: Path, model: torch.nn.Module) -> Path:
    path = folder / 'small.safetensors'
    path.write_bytes(safetensors.torch.save(model.state_dict(), {'words': json.dumps(WORDS)}))
    return path


def test_words_become_their_rows_between_start_and_end() -> None:
    tokens = WordTokenizer(WORDS, ROWS, 8, 'file')(PROMPTS[1])
    assert tokens.tolist() == [[9, 1, 2, 3, 1, 5, 6, 10]]  # cut to eight, the end last
    assert WordTokenizer(WORDS, ROWS, 8, 'file')(['A  Cat', '.']).tolist() == [
        [9, 1, 4, 10, 0, 0, 0, 0],
        [9, 8, 10, 0, 0, 0, 0, 0],
    ]


@pytest.mark.parametrize('custom', [False, True])
def test_a_file_that_names_its_words_has_their_features(custom: bool, tmp_path: Path) -> None:
    model = (open_clip.CustomTextCLIP if custom else open_clip.CLIP)(**config()).eval()
    source = CLIPSpec(config(custom_text=custom), write(tmp_path, model))
    tokens = source.tokenizer()(PROMPTS)
    assert tokens[1, :10].tolist() == [9, 1, 2, 3, 1, 5, 6, 7, 8, 10]
    with torch.no_grad():
        torch.testing.assert_close(source.text_tower().encode_text(tokens), model.encode_text(tokens))


def test_a_host_takes_known_class_names_and_names_all_unknown_ones(tmp_path: Path) -> None:
    clip = {'model': config(), 'pretrained': write(tmp_path, open_clip.CLIP(**config()))}
    host = SCLIP(clip, class_names=['cat', 'large checkerboard'], templates=['a photo of a {}.'])
    assert host.text_features.shape == (2, 32)
    refusal = (
        r"Unknown word 'horse', 'route', '7' \(e\.g\. in 'a photo of a horse\.'\): small\.safetensors was trained with "
        r'7 words only \(a, photo, .*\)\. Use its words, or another CLIP model'
    )
    with pytest.raises(TPAError, match=refusal):
        SCLIP(clip, class_names=['cat', 'horse', 'route 7'], templates=['a photo of a {}.'])


@pytest.mark.parametrize(
    'words',
    ['[' * 100_000, '[]', '5', '{"a": 1}', '{"a": [-1]}', '{"a": [11]}', '{"a": ["b"]}', '{"a": [1], "a": [2]}'],
)
def test_odd_words_are_one_message(words: str, tmp_path: Path) -> None:
    path = tmp_path / 'small.safetensors'
    path.write_bytes(safetensors.torch.save({'a': torch.ones(1)}, {'words': words}))
    with pytest.raises(TPAError, match=r'small\.safetensors'):
        CLIPSpec(config(), path).tokenizer()


def test_other_files_have_the_tokenizer_of_open_clip(tmp_path: Path) -> None:
    safetensors.torch.save_file(open_clip.CLIP(**tiny_clip()).state_dict(), tmp_path / 'clip.safetensors')
    assert stored_words(tmp_path / 'clip.safetensors') is None
    assert isinstance(CLIPSpec(tiny_clip(), tmp_path / 'clip.safetensors').tokenizer(), open_clip.SimpleTokenizer)


@pytest.mark.parametrize('name', ['clip', 'clip_p7'])
def test_the_miniature_files_name_the_words_of_their_captions(name: str) -> None:
    words, rows = vocabulary()
    path = ROOT / f'tpa_mmseg/miniature/weights/{name}.safetensors'
    assert stored_words(path) == words and len(words) == 90
    with safetensors.safe_open(path, framework='pt') as file:
        assert file.get_slice('token_embedding.weight').get_shape()[0] == rows


def test_words_of_the_captions_have_the_pieces_of_open_clip() -> None:
    """Tokens differ from open_clip's only in their numbers, so the same sentences have the same features."""
    words, rows = vocabulary()
    ours, theirs = WordTokenizer(words, rows, 32, 'file'), open_clip.SimpleTokenizer(context_length=32)
    texts = [template(' and a '.join(('Checkerboard', 'sky', 'bullseye'))) for template in TEMPLATES]
    one, other = ours(texts), theirs(texts)
    number: dict[int, int] = {}
    for row, token in zip(one.flatten().tolist(), other.flatten().tolist(), strict=True):
        assert number.setdefault(row, token) == token
    assert len(set(number.values())) == len(number)
