"""Weights: what they are, where they come from, where configs find them, and whether they are all there."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import huggingface_hub
import open_clip
import safetensors.torch
import timm.models
import torch.hub
from open_clip.constants import HF_SAFE_WEIGHTS_NAME, HF_WEIGHTS_NAME

from .. import catalog
from ..clip.source import CLIPSpec
from ..encoders.timm_models import build_network
from ..errors import TPAError
from ..sam.encoder import SAMEncoder
from .files import SUFFIXES, explain_download, find, load_state_dict, weights_dir

# A repository of the hub and names of files in it.
Cached = tuple[str, tuple[str, ...]] | None

# A server that is silent for so long will not answer any more.
_SILENCE_SECONDS = 30


class Weights:
    """The weights of one model.

    Args:
        title: What to call the model.
        names: The names, without a suffix, under which it is looked for in the weights folder. The first is ours.
        source: What to bring where there is no internet.
        cached: Where the hub's cache may have it.
    """

    def __init__(self, title: str, names: tuple[str, ...], source: str, cached: Cached = None) -> None:
        self.title, self.names, self.source, self.cached = title, names, source, cached

    @property
    def target(self) -> Path:
        """Where the file belongs."""
        return weights_dir() / f'{self.names[0]}{SUFFIXES[0]}'

    @property
    def size(self) -> int | None:
        """In MB, None where it is not known."""
        return catalog.weights(self.names[0]).megabytes

    @property
    def license(self) -> str:
        """Its short name."""
        return catalog.weights(self.names[0]).license or 'unknown'

    def locate(self) -> Path | None:
        """Where the config finds the file: in the weights folder, or in the hub's cache."""
        found = next(filter(None, map(find, self.names)), None)
        if found is None and self.cached is not None:
            repository, files = self.cached
            hits = (huggingface_hub.try_to_load_from_cache(repository, file) for file in files)
            found = next((Path(hit) for hit in hits if isinstance(hit, str)), None)
        return found

    def load(self, path: Path) -> None:
        """Builds the model from a file, as the config will. Raises TPAError where the file does not give all of it."""
        raise NotImplementedError

    def download(self, folder: Path) -> Path:
        """Downloads the file below a folder with the library's own code."""
        raise NotImplementedError

    def fetch(self) -> Path:
        """Downloads the file to where it belongs, all of it or nothing."""
        folder = weights_dir() / '.downloads'
        with explain_download(self.title, self.source, self.target), _impatience():
            folder.mkdir(parents=True, exist_ok=True)
            try:
                file = self.download(folder)
                target = self.target.with_name(f'{self.names[0]}{file.suffix}')
                # In a cache of the hub, a file's name is a link to its content.
                os.replace(file.resolve(), target)
                shutil.rmtree(folder)
            finally:
                # What is half downloaded stays: the next attempt goes on with it.
                with suppress(OSError):
                    folder.rmdir()
        return target


class CLIPWeights(Weights):
    """A CLIP model of open_clip. Args: model: its name; tag: that of its weights."""

    def __init__(self, model: str, tag: str) -> None:
        self.model = model.replace('/', '-')
        self.settings = open_clip.get_pretrained_cfg(self.model, tag)
        repository, _, file = self.settings.get('hf_hub', '').rpartition('/')
        files = (file,) if file else (HF_SAFE_WEIGHTS_NAME, HF_WEIGHTS_NAME)
        source = f'{files[0]} of the hub repository {repository}' if repository else self.settings['url']
        # The models with and without QuickGELU share their weights.
        name = f'{self.model.removesuffix("-quickgelu")}.{tag}'
        super().__init__(f'CLIP {self.model} ({tag})', (name,), source, (repository, files) if repository else None)

    def load(self, path: Path) -> None:
        source = CLIPSpec(self.model, str(path))
        source.tower()
        source.text_tower()

    def download(self, folder: Path) -> Path:
        return Path(open_clip.download_pretrained(self.settings, cache_dir=str(folder)))


class TimmWeights(Weights):
    """A vision transformer of timm. Args: name: with its tag."""

    def __init__(self, name: str) -> None:
        config = timm.models.get_pretrained_cfg(name)
        self.repository, self.url = config.hf_hub_id, config.url
        self.file = config.hf_hub_filename or 'pytorch_model.bin'
        files = (config.hf_hub_filename,) if config.hf_hub_filename else ('model.safetensors', self.file)
        source = f'{files[0]} of the hub repository {self.repository}' if self.repository else self.url
        self.own_license = config.license
        # Under the second name the file was first released.
        names = (f'{config.architecture}.{config.tag}', *([Path(self.url).stem] if self.url else []))
        super().__init__(names[0], names, source, (self.repository, files) if self.repository else None)

    @property
    def license(self) -> str:
        return catalog.weights(self.names[0]).license or self.own_license or 'unknown'

    def load(self, path: Path) -> None:
        build_network(self.names[0], path)

    def download(self, folder: Path) -> Path:
        if not self.repository:
            return _download_url(self.url, folder)
        state = timm.models.load_state_dict_from_hf(self.repository, self.file, cache_dir=folder)
        file = folder / f'{self.names[0]}.safetensors'
        safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in state.items()}, file)
        return file


class SAMWeights(Weights):
    """The whole of SAM, as its authors published it. Args: model: ``'vit_b'``, ``'vit_l'`` or ``'vit_h'``."""

    def __init__(self, model: str) -> None:
        file = catalog.sam_weights(model)
        self.model, self.url = model, file.url
        super().__init__(f'SAM {model}', (file.name,), self.url)

    @property
    def target(self) -> Path:
        return weights_dir() / f'{self.names[0]}.pth'

    def load(self, path: Path) -> None:
        SAMEncoder(self.model, path)

    def download(self, folder: Path) -> Path:
        return _download_url(self.url, folder)


class OwnFile(Weights):
    """Weights that a config names by their path. Args: path: the path; what: the model they are for."""

    def __init__(self, path: str | os.PathLike, what: str) -> None:
        self.path = Path(os.path.normpath(Path(path).expanduser()))
        super().__init__(f'{what} ({self.path.name})', (str(self.path),), 'a file of your own')

    @property
    def target(self) -> Path:
        return self.path

    def locate(self) -> Path | None:
        return self.path if self.path.is_file() else None

    def load(self, path: Path) -> None:
        load_state_dict(path)

    def fetch(self) -> Path:
        raise TPAError(f'{self.path} is a file of your own and cannot be downloaded: bring it, or correct the config.')


def _download_url(url: str, folder: Path) -> Path:
    file = folder / Path(url).name
    torch.hub.download_url_to_file(url, str(file))
    return file


@contextmanager
def _impatience() -> Iterator[None]:
    """Ends connections that have fallen silent: the libraries would wait for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_SILENCE_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
