"""One check of a whole config before anything is built: every key and value, against the classes that read them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import torch.utils.data
from mmengine.config import Config
from mmengine.registry import FUNCTIONS, Registry
from mmengine.runner import Runner, set_random_seed
from mmengine.utils.dl_utils import set_multi_processing
from mmseg import registry
from mmseg.datasets import BaseSegDataset
from mmseg.models.segmentors import EncoderDecoder

from ..encoders import Encoder
from ..errors import TPAError
from ..hosts import Host
from ..options import AtLeastOne, NotNegative, Range, options_of_class, problems
from ..options.checking import typed_problems
from ..options.signature import Option

# Where classes are registered, by the key in front of them; everything else is a model.
_REGISTRIES = {
    'dataset': registry.DATASETS,
    'datasets': registry.DATASETS,
    'pipeline': registry.TRANSFORMS,
    'transforms': registry.TRANSFORMS,
    'sampler': registry.DATA_SAMPLERS,
    'batch_sampler': registry.DATA_SAMPLERS,
    'collate_fn': FUNCTIONS,
    'test_evaluator': registry.METRICS,
    'metrics': registry.METRICS,
    'custom_hooks': registry.HOOKS,
    'default_hooks': registry.HOOKS,
    'test_cfg': registry.LOOPS,
    'visualizer': registry.VISUALIZERS,
    'vis_backends': registry.VISBACKENDS,
    'log_processor': registry.LOG_PROCESSORS,
}
_ALL = tuple(each for each in vars(registry).values() if isinstance(each, Registry))
# Keys that the caller takes away before a class is built.
_EXTRA = {'custom_hooks': ('priority',), 'default_hooks': ('priority',), 'norm_cfg': ('requires_grad',)}
# Models that get arguments from the class around them, and layers whose names other packages register.
_HELPERS = ('_cfg', '_layer', 'upsample')
_TOP = tuple(name for name in inspect.signature(Runner.__init__).parameters if name not in ('self', 'cfg'))
_DICTS = (
    'model',
    'test_cfg',
    'visualizer',
    'log_processor',
    'default_hooks',
    'test_dataloader',
    'randomness',
    'env_cfg',
)


def raise_problems(found: Sequence[str], what: str) -> None:
    """Raises TPAError with everything that is wrong: one sentence each, one line each. Args: what: has them."""
    if len(found) == 1:
        raise TPAError(found[0])
    if found:
        raise TPAError('\n  '.join([f'{what} has {len(found)} problems:', *found]))


def check_model(model: Mapping) -> None:
    """Raises TPAError if something is wrong with the config of a model."""
    raise_problems(list(config_problems(Config({'model': model}).to_dict())), 'The model')


def config_problems(cfg: Mapping) -> Iterator[str]:
    """Yields a sentence with the full key for every key that nobody reads and every value that does not fit.

    Args:
        cfg: The config as plain dicts; what it leaves out is not checked.
    """
    yield from _top_problems(cfg)
    # What is not a dict is named once, and not looked into.
    wrong = [key for key in _DICTS if not isinstance(cfg.get(key) or {}, Mapping)]
    yield from (f'{key} must be a dict, not {cfg[key]!r}.' for key in wrong)
    if not isinstance(cfg.get('custom_hooks') or [], (list, tuple)):
        wrong.append('custom_hooks')
        yield f'custom_hooks must be a list of dicts, not {cfg["custom_hooks"]!r}.'
    cfg, kinds = {key: value for key, value in cfg.items() if key not in wrong}, _Kinds()
    for key in ('model', 'test_cfg', 'visualizer', 'log_processor'):
        yield from _part_problems(cfg.get(key), key, kinds, required=key == 'model')
    for key in ('test_evaluator', 'custom_hooks'):
        for place, part in _listed(cfg.get(key), key):
            yield from _part_problems(part, place, kinds)
    for name, part in (cfg.get('default_hooks') or {}).items():
        yield from _part_problems(part, f'default_hooks.{name}', kinds, required=False)
    yield from _pool_problems(cfg, kinds)
    if cfg.get('test_dataloader'):
        yield from problems(TestLoader, cfg['test_dataloader'], 'test_dataloader', kinds)
    yield from problems(set_random_seed, cfg.get('randomness') or {}, 'randomness', kinds)
    yield from problems(environment_options, cfg.get('env_cfg') or {}, 'env_cfg', kinds)


def unread_key(key: str, cfg: Mapping) -> str | None:
    """Returns what is wrong with a key of ``--cfg-options`` that neither the config has nor a test reads."""
    first = key.partition('.')[0]
    if first in cfg or first in _TOP:
        return None
    near = difflib.get_close_matches(first, [*_TOP, *cfg], n=1)
    hint = f'Did you mean {near[0]}?' if near else 'Options begin with model, test_dataloader, test_evaluator, ...'
    return f'{key} is not in the config. {hint}'


def _top_problems(cfg: Mapping) -> Iterator[str]:
    """Keys at the top that look like one that a test reads. Others are variables of the config's own."""
    for key in cfg:
        near = difflib.get_close_matches(key, _TOP, n=1, cutoff=0.92)
        if key not in _TOP and near:
            yield f'{key} is not read by a test. Did you mean {near[0]}?'
    top = options_of_class(run_options).known
    yield from problems(run_options, {key: cfg[key] for key in top if key in cfg}, '')


def _listed(value: Any, place: str) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(f'{place}.{index}', part) for index, part in enumerate(value)]
    return [] if value is None else [(place, value)]


def _part_problems(part: Any, place: str, kinds: _Kinds, required: bool = True) -> Iterator[str]:
    if part is None or (not required and not part):
        return
    if not isinstance(part, Mapping):
        yield f'{place} must be a dict, not {part!r}.'
    elif 'type' in part:
        yield from typed_problems(part, Option(), place, kinds)
    elif required:
        yield f'{place}.type is missing: name a class.'


def _pool_problems(cfg: Mapping, kinds: _Kinds) -> Iterator[str]:
    """What PrototypeBankHook would change of the test set, as options of that dataset."""
    dataset = (cfg.get('test_dataloader') or {}).get('dataset')
    for index, hook in enumerate(cfg.get('custom_hooks') or ()):
        pool = hook.get('pool') if isinstance(hook, Mapping) else None
        changes = pool.get('dataset') if isinstance(pool, Mapping) else None
        if isinstance(changes, Mapping) and isinstance(dataset, Mapping) and 'type' in dataset:
            place = f'custom_hooks.{index}.pool.dataset'
            for text in typed_problems({**dataset, **changes}, Option(), place, kinds):
                if text[len(place) + 1 :].startswith(tuple(changes)):
                    yield text


class _Kinds:
    """Looks up the classes of a config in MMSegmentation's registries."""

    def find(self, part: Mapping, place: str) -> Callable | None:
        kind, key = part['type'], _key(place)
        if not isinstance(kind, str):
            return kind if callable(kind) else None
        for each in (_REGISTRIES.get(key, registry.MODELS), *_ALL):
            if (cls := each.get(kind)) is not None:
                return cls
        if key.endswith(_HELPERS):
            return None
        raise TPAError(_unknown_type(kind, place, _REGISTRIES.get(key, registry.MODELS)))

    def extra(self, place: str) -> tuple[str, ...]:
        return _EXTRA.get(_key(place), ())

    def part(self, kind: Callable, key: str) -> Callable | None:
        if key == 'test_cfg' and kind is EncoderDecoder:  # others have more options
            return inference_options
        if key == 'data_prefix' and isinstance(kind, type) and issubclass(kind, BaseSegDataset):
            default = options_of_class(kind).known[key].default
            return prefix_options if set(default or ()) <= set(options_of_class(prefix_options).known) else None
        return None

    def ours(self, module: str) -> bool:
        return module.startswith('tpa_mmseg')

    def complete(self, kind: Callable, place: str) -> bool:
        return self.ours(kind.__module__) and _key(place) != 'sampler'  # which gets the dataset from its loader


def _key(place: str) -> str:
    """Returns the last part of a place that is a name and not a number; of hooks and defaults, where they stand."""
    if place.startswith('default_hooks.'):
        return 'default_hooks' if place.count('.') == 1 else place.rpartition('.')[2]
    return next(part for part in reversed(place.split('.')) if not part.isdigit())


def _unknown_type(kind: str, place: str, found: Registry) -> str:
    known = sorted(_names(found))
    base = {'host': Host, 'encoder': Encoder, 'proxy': Encoder}.get(_key(place))
    if base is not None:
        choices = [name for name in known if isinstance(cls := found.get(name), type) and issubclass(cls, base)]
        hint = f'Choose from: {", ".join(choices)}, or any registered model.'
    else:
        near = difflib.get_close_matches(kind, known, n=1)
        hint = f'Did you mean {near[0]!r}?' if near else 'Check its name and custom_imports.'
    return f'{place}.type is unknown: {kind!r}. {hint}'


def _names(found: Registry | None) -> set[str]:
    return set() if found is None else {*found.module_dict, *_names(found.parent)}


def run_options(
    work_dir: str = '',
    load_from: str | None = None,
    resume: bool = False,
    launcher: str = 'none',
    log_level: Literal['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] | int = 'INFO',
    default_scope: str | None = None,
) -> None:
    """The plain values at the top of a config."""


def environment_options(
    cudnn_benchmark: bool = False,
    mp_cfg: Annotated[dict, set_multi_processing] | None = None,
    dist_cfg: dict | None = None,
    resource_limit: AtLeastOne = 4096,
) -> None:
    """The ``env_cfg`` of a config, as MMEngine's Runner reads it."""


def inference_options(
    mode: Literal['slide', 'whole'] = 'whole',
    crop_size: Sequence[AtLeastOne] | None = None,
    stride: Sequence[AtLeastOne] | None = None,
) -> None:
    """The ``test_cfg`` of MMSegmentation's segmentors."""


def prefix_options(img_path: str | None = None, seg_map_path: str | None = None) -> None:
    """The ``data_prefix`` of MMSegmentation's datasets."""


class TestLoader(torch.utils.data.DataLoader):
    """The options of ``test_dataloader``: those of PyTorch's, with their ranges."""

    __test__ = False  # not a pytest class

    def __init__(
        self,
        dataset: dict | torch.utils.data.Dataset,
        sampler: dict | torch.utils.data.Sampler | None = None,
        batch_sampler: dict | torch.utils.data.Sampler | None = None,
        batch_size: AtLeastOne = 1,
        num_workers: Annotated[int, Range(0)] = 0,
        collate_fn: dict | Callable | None = None,
        worker_init_fn: dict | Callable | None = None,
        num_batch_per_epoch: AtLeastOne | None = None,
        shuffle: Literal[False] | None = None,
        drop_last: Literal[False] = False,
        pin_memory: bool = False,
        timeout: NotNegative = 0,
        prefetch_factor: AtLeastOne | None = None,
        persistent_workers: bool = False,
        in_order: bool = True,
        pin_memory_device: str = '',
        generator: torch.Generator | None = None,
        multiprocessing_context: Literal['fork', 'spawn', 'forkserver'] | None = None,
        **kwargs,
    ) -> None:
        super().__init__(dataset, **kwargs)
