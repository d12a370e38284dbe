"""What every test needs: the package registered before mmseg is imported, one thread, a fixed seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import tpa_mmseg  # noqa: F401  (installs the compatibility lines before any test imports mmseg)
from tests.helpers import slurm
from tests.helpers.golden import golden_file, load, save_weights, text_state
from tests.helpers.zoo import ZOO

#: The method's own tests, which `make quick` runs, ...
QUICK_FOLDERS = ('core', 'layers', 'catalog', 'clip', 'encoders', 'segmentors', 'evaluation', 'datasets')
#: ... with the hosts whose code differs.
QUICK_HOSTS = (
    'SCLIP with area_thd',
    'NACLIP',
    'MaskCLIP with refinements',
    'GEM',
    'ProxyCLIP with FSA',
    'TENT around NACLIP',
    'LAME around NACLIP',
    'Trident with refinement',
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `make quick` runs: by folder, and of the contract's tests those of a few hosts."""
    tests, builders = Path(__file__).parent, [ZOO[host] for host in QUICK_HOSTS]
    for item in items:
        built = item.callspec.params.get('build') if hasattr(item, 'callspec') else None
        chosen = item.path.relative_to(tests).parts[0] in QUICK_FOLDERS or built in builders
        if chosen and item.get_closest_marker('slow') is None:
            item.add_marker('quick')


@pytest.fixture(scope='session', autouse=True)
def _one_thread() -> None:
    """The tensors of the tests are tiny: more threads only wait for each other."""
    torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Skips what an old PyTorch cannot do on a CPU."""
    try:
        return (yield)
    except RuntimeError as error:
        if 'AutocastCPU only support Bfloat16' in str(error):
            pytest.skip('float16 on CPUs needs PyTorch 2.3 or later')
        raise


@pytest.fixture(autouse=True)
def _seed() -> None:
    """A test that draws numbers draws the same ones alone and among others."""
    torch.manual_seed(0)


@pytest.fixture(scope='session')
def clip_weights(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    """File with both towers of golden/clip_hosts, by patch size."""
    folder, files = tmp_path_factory.mktemp('clip_weights'), {}

    def weights(patch: int) -> str:
        if patch not in files:
            visual = load(golden_file('clip_hosts', f'weights_p{patch}.npz'))
            files[patch] = save_weights({**visual, **text_state()}, folder / f'p{patch}.safetensors')
        return files[patch]

    return weights


@pytest.fixture(scope='session')
def plugin_weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    """File with the visual tower of golden/plugins."""
    state = load(golden_file('plugins', 'weights.npz'))
    path = tmp_path_factory.mktemp('plugin_weights') / 'visual.safetensors'
    return save_weights({f'visual.{name}': tensor for name, tensor in state.items()}, path)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text features that a test makes stay with the test."""
    monkeypatch.setenv('TPA_CACHE', str(tmp_path_factory.mktemp('cache')))


@pytest.fixture(autouse=True)
def weights_folder(tmp_path_factory, monkeypatch) -> Path:
    """An empty weights folder of the test's own."""
    folder = tmp_path_factory.mktemp('weights')
    monkeypatch.setenv('TPA_WEIGHTS', str(folder))
    return folder


@pytest.fixture
def no_hub(tmp_path, monkeypatch) -> Path:
    """No connection to the hub and nothing in its cache, whose folder is returned."""
    import huggingface_hub.constants

    cache = tmp_path / 'hub'
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_CACHE', str(cache))
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', True)
    return cache


@pytest.fixture(scope='session')
def slurm_conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Slurm of one node that runs on this machine as long as the tests do."""
    if (reason := slurm.missing()) is not None:
        pytest.skip(reason)
    with slurm.cluster(tmp_path_factory.mktemp('slurm')) as conf:
        yield conf


@pytest.fixture
def one_node_slurm(slurm_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test use it."""
    monkeypatch.setenv('SLURM_CONF', str(slurm_conf))
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
