"""Every option of every class that a config can name: misspelt, of a wrong type, and out of range.

The lists are made from the signatures, so a new option is tested as soon as it exists.
"""

from __future__ import annotations

import importlib
import typing
from collections.abc import Iterator, Sequence

import pytest
from mmengine.config import Config
from mmseg import registry
from mmseg.datasets import BaseSegDataset
from mmseg.datasets.transforms import PackSegInputs

from tests.helpers.world import ROOT
from tpa_mmseg.clip.source import CLIPSpec
from tpa_mmseg.core import AnchorRule, Fusion
from tpa_mmseg.core.centered import Consistency
from tpa_mmseg.datasets import PoolOptions
from tpa_mmseg.engine.config_check import TestLoader, config_problems
from tpa_mmseg.hosts.trident.refinement import Refinement
from tpa_mmseg.options import Range, options_of_class, problems
from tpa_mmseg.options.values import _members, fits
from tpa_mmseg.plugins.resclip import CrossCorrelation
from tpa_mmseg.plugins.resclip_feedback import Feedback
from tpa_mmseg.sam.encoder import SAMEncoder
from tpa_mmseg.sam.model import SAMModel

# Parts of a config that have no type of their own.
UNTYPED = (AnchorRule, Fusion, Consistency, PoolOptions, CLIPSpec, SAMEncoder, SAMModel, Refinement, CrossCorrelation)
UNTYPED += (Feedback, TestLoader)
FOREIGN = (BaseSegDataset, PackSegInputs)


class Nothing:
    """Of no type that an option has."""

    def __repr__(self) -> str:
        return 'nothing'


def registered() -> list[type]:
    """Every class of this package that a config can name."""
    found = [
        cls
        for each in vars(registry).values()
        if hasattr(each, 'module_dict')
        for cls in each.module_dict.values()
        if getattr(cls, '__module__', '').startswith('tpa_mmseg')
    ]
    return sorted(dict.fromkeys(found), key=lambda cls: cls.__name__)


CLASSES = [*registered(), *UNTYPED, *FOREIGN]
OPTIONS = [(cls, name) for cls in CLASSES for name in options_of_class(cls).known]


def wrong_values() -> Iterator[tuple[type, str, object]]:
    """Values of a wrong type for every annotated option, and one beyond each end of its range."""
    for cls, name in OPTIONS:
        annotations = options_of_class(cls).known[name].annotations
        if annotations and not any(typing.Any in _members(hint) for hint in annotations):
            yield cls, name, Nothing()
            kinds = {base(part) for hint in annotations for part in _members(hint)}
            if kinds & {int, float} and bool not in kinds:
                yield from ((cls, name, value) for value in (float('nan'), float('inf'), True, '1'))
            if {typing.get_origin(kind) for kind in kinds} & {list, tuple, Sequence}:
                yield cls, name, [Nothing()]
        rules = [rule for hint in annotations for rule in ranges(hint)]
        for rule in rules[:1]:
            yield cls, name, rule.low if rule.above else rule.low - 1
            if rule.high < float('inf'):
                yield cls, name, rule.high + 1


def base(part: object) -> object:
    """A part of an annotation without its rules."""
    return typing.get_args(part)[0] if typing.get_origin(part) is typing.Annotated else part


def nested(hint: object) -> Iterator[type]:
    """The classes that read a dict."""
    rules = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    yield from (rule for rule in rules if isinstance(rule, type))
    for part in typing.get_args(hint):
        yield from nested(part)


def ranges(hint: object) -> list[Range]:
    """The ranges of an option itself, not those of the items of a list."""
    parts = [part for part in _members(hint) if typing.get_origin(part) is typing.Annotated]
    return [rule for part in parts for rule in typing.get_args(part)[1:] if isinstance(rule, Range)]


WRONG = list(wrong_values())


def said(cls: type, **given) -> list[str]:
    """What the check says about some options of a class, besides those that are missing."""
    return [text for text in problems(cls, given, 'place') if ' is missing: ' not in text]


def test_the_lists_have_every_option():
    hints = [hint for cls, name in OPTIONS for hint in options_of_class(cls).known[name].annotations]
    assert {cls for hint in hints for cls in nested(hint)} <= {*CLASSES}
    assert {(cls.__name__, name) for cls, name in OPTIONS} == {(cls.__name__, name) for cls, name, _ in WRONG}


@pytest.mark.parametrize('cls', CLASSES, ids=lambda cls: cls.__name__)
def test_a_misspelt_option_is_one_sentence_with_the_right_one(cls):
    assert not options_of_class(cls).open
    for name in options_of_class(cls).known:
        (text,) = said(cls, **{f'{name}x': 1})
        assert text == f'place.{name}x is not an option of {cls.__name__}. Did you mean place.{name}?'


@pytest.mark.parametrize('cls', CLASSES, ids=lambda cls: cls.__name__)
def test_a_wrong_value_is_one_sentence_with_what_is_allowed(cls):
    for _, name, value in (case for case in WRONG if case[0] is cls):
        (text,) = said(cls, **{name: value})
        assert text.startswith(f'place.{name} must be ') and text.endswith(f', not {value!r}.'), text


@pytest.mark.parametrize('cls', CLASSES, ids=lambda cls: cls.__name__)
def test_every_default_is_allowed(cls):
    for name, option in options_of_class(cls).known.items():
        if not option.required and cls.__module__.startswith('tpa_mmseg'):
            hints = [hint for hint in option.annotations if option.default is not None]
            assert all(fits(option.default, hint) for hint in hints), name


@pytest.mark.parametrize('cls', [cls for cls in UNTYPED if hasattr(cls, '__post_init__')], ids=lambda cls: cls.__name__)
def test_a_dataclass_refuses_what_the_check_refuses(cls):
    ranged = {name for name, option in options_of_class(cls).known.items() if any(map(ranges, option.annotations))}
    for _, name, value in (case for case in WRONG if case[0] is cls and case[1] in ranged):
        if type(value) not in (int, float):
            continue
        with pytest.raises(ValueError, match=name):
            cls(**{name: value})


def broken(config: str, changes: dict) -> list[str]:
    cfg = Config.fromfile(ROOT / 'configs/miniature' / f'{config}.py')
    cfg.merge_from_dict(changes)
    return list(config_problems(cfg.to_dict()))


@pytest.mark.parametrize(
    'config, key, value, expected',
    [
        ('naclip_mini-b8', 'model.host.slide_strid', 3, 'Did you mean model.host.slide_stride?'),
        ('naclip_mini-b8', 'model.host.clip.pretraind', 'x', 'Did you mean model.host.clip.pretrained?'),
        ('naclip_mini-b8', 'model.host.type', 'NACLP', 'model.host.type is unknown'),
        ('naclip_mini-b8', 'model.host', 3, 'model.host must be '),
        ('naclip_mini-b8', 'model.encoder.type', 'NACLIP', 'model.encoder.type must be an Encoder'),
        ('naclip-mlmp_mini-b8', 'model.host.scope', 'stream', "must be one of 'image', 'batch'"),
        ('naclip-mlmp_mini-b8', 'model.host.host.slide_crp', 3, 'model.host.host.slide_crop?'),
        (
            'naclip-resclip_mini-b8',
            'model.host.plugin',
            {'_delete_': True, 'type': 'FSA', 'kep': 1},
            'model.host.plugin.kep',
        ),
        ('trident_mini-b8', 'model.host.refinement.minimal_are', 3, 'minimal_area?'),
        ('trident_mini-b8', 'model.host.sam.precision', 'half', 'sam.precision must be one of'),
        ('trident_mini-b8', 'model.host.proxy.short_side', 0, 'at least 1 or None, not 0'),
        ('fcn_mini', 'model.host.segmentor.backbone.dept', 18, 'segmentor.backbone.depth?'),
        ('fcn_mini', 'model.host.segmentor.decode_head.chanels', 1, 'decode_head.channels?'),
        ('fcn_mini', 'model.host.segmentor.decode_head.loss_decode.use_sigmod', 1, 'use_sigmoid?'),
        ('fcn_mini', 'model.host.segmentor.data_preprocessor.men', 1, 'data_preprocessor.mean?'),
        ('fcn_mini', 'model.host.segmentor.test_cfg.mode', 'wole', "must be 'slide' or 'whole'"),
        ('fcn_mini', 'test_dataloader.batch_size', 0, 'batch_size must be an integer of at least 1'),
        ('fcn_mini', 'test_dataloader.drop_last', True, 'drop_last must be False, not True'),
        (
            'fcn_mini',
            'test_dataloader.dataset.pipeline.0',
            {'type': 'Resize', 'scale_factor': -1},
            'scale_factor must be a number greater than 0',
        ),
        ('fcn_mini', 'test_dataloader.num_worker', 2, 'Did you mean test_dataloader.num_workers?'),
        ('fcn_mini', 'test_dataloader.dataset.sizes', 2, 'Did you mean test_dataloader.dataset.size?'),
        ('fcn_mini', 'test_dataloader.dataset.pipeline.2.meta_key', 2, 'dataset.pipeline.2.meta_keys?'),
        ('fcn_mini', 'test_dataloader.dataset.pipeline.0.type', 'LoadImge', 'pipeline.0.type is unknown'),
        ('fcn_mini', 'test_dataloader.dataset.data_prefix', {'img_pth': 'x'}, 'data_prefix.img_path?'),
        ('fcn_mini', 'test_evaluator.ignore_indx', 2, 'Did you mean test_evaluator.ignore_index?'),
        ('fcn_mini', 'test_evaluator.type', 'HostTPAMetrc', "Did you mean 'HostTPAMetric'?"),
        ('fcn_mini', 'custom_hooks.0.pool.sizes', 2, 'Did you mean custom_hooks.0.pool.size?'),
        ('fcn_mini', 'custom_hooks.0.pool.dataset', {'ann_fil': 'x'}, 'pool.dataset.ann_file?'),
        ('fcn_mini', 'custom_hooks.0.reus', 2, 'Did you mean custom_hooks.0.reuse?'),
        ('fcn_mini', 'randomness.sed', 2, 'Did you mean randomness.seed?'),
        ('fcn_mini', 'env_cfg.cudnn_benchmrk', 2, 'Did you mean env_cfg.cudnn_benchmark?'),
        ('fcn_mini', 'test_cfg.fp61', True, 'Did you mean test_cfg.fp16?'),
        ('fcn_mini', 'custom_hook', [], 'custom_hook is not read by a test. Did you mean custom_hooks?'),
        ('fcn_mini', 'log_level', 'LOUD', 'log_level must be '),
        ('fcn_mini', 'visualizer.vis_backend', [], 'Did you mean visualizer.vis_backends?'),
    ],
)
def test_a_wrong_key_anywhere_in_a_config_is_named_in_full(config, key, value, expected):
    found = broken(config, {key: value})
    assert len(found) == 1 and expected in found[0], found


@pytest.mark.parametrize(
    'section',
    [
        'model',
        'test_dataloader',
        'test_evaluator',
        'test_cfg',
        'custom_hooks',
        'default_hooks',
        'env_cfg',
        'randomness',
    ],
)
def test_a_section_that_is_not_a_dict_is_named(section):
    (text,) = config_problems({'model': {'type': 'CLIPEncoder', 'clip': {'model': 'x'}}, section: 3})
    assert text == f'{section} must be a {"list of dicts" if section == "custom_hooks" else "dict"}, not 3.'


def test_all_problems_are_found_at_once():
    found = broken('fcn_mini', {'model.fusion.alpha': 2, 'model.hots': 1, 'test_evaluator.prefx': 'x'})
    assert [text.split(' ')[0] for text in found] == ['model.fusion.alpha', 'model.hots', 'test_evaluator.prefx']


def test_shipped_configs_have_no_problems():
    configs = ROOT / 'configs'
    for path in [*sorted(configs.glob('*/*_vit-h14_voc21.py')), *sorted(configs.glob('miniature/*.py'))]:
        assert not list(config_problems(Config.fromfile(path).to_dict())), path


def test_a_checkpoint_of_keyword_arguments_that_go_elsewhere_is_left_alone():
    """A class that gives its **kwargs to another library takes any option."""
    backbone = importlib.import_module('mmseg.models.backbones').TIMMBackbone
    assert options_of_class(backbone).open
    assert not said(backbone, model_name='resnet18', drop_rate=0.1)
