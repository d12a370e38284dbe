"""Where the weights of a model come from, where they are on this machine, and how they are downloaded."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
import open_clip
import timm.models
import torch.hub
from huggingface_hub.errors import EntryNotFoundError
from open_clip.constants import HF_SAFE_WEIGHTS_NAME, HF_WEIGHTS_NAME

from .. import catalog
from ..errors import TPAError
from .checkpoints import first_sentence
from .files import SUFFIXES, find, local_path, weights_dir


@dataclass(frozen=True)
class Source:
    """The weights of one model: on the hub, at a URL, or in a file of the user.

    Args:
        title: Name of the model, for messages.
        names: Names in the weights folder, without a suffix. The first is ours, the others those of original releases.
        repository: Its repository on the Hugging Face hub.
        files: The files of that repository that hold the weights, the preferred one first.
        url: Where the file is if it is not on the hub.
        sha256: Checksum of the file at the URL.
        own: A file that a config names by its path.
        published_license: The license that the model's library states.
    """

    title: str
    names: tuple[str, ...] = ()
    repository: str = ''
    files: tuple[str, ...] = ()
    url: str = ''
    sha256: str = ''
    own: Path | None = None
    published_license: str = 'unknown'

    @property
    def origin(self) -> str:
        """What to download by hand."""
        if self.own is not None:
            return 'your own file'
        return f'{self.files[0]} of the hub repository {self.repository}' if self.repository else self.url

    @property
    def target(self) -> Path:
        """Where the file belongs."""
        return self.own or self._target(SUFFIXES[0] if self.repository else Path(self.url).suffix)

    def _target(self, suffix: str) -> Path:
        return weights_dir() / f'{self.names[0]}{suffix if suffix in SUFFIXES else SUFFIXES[0]}'

    @property
    def megabytes(self) -> int | None:
        """Size of the file; None if it is not known."""
        return self._entry.megabytes

    @property
    def license(self) -> str:
        return self._entry.license or self.published_license

    @property
    def checksum(self) -> str | None:
        """First digits of the SHA-256 of the file at the URL, which may name them itself."""
        named = re.search(r'-([0-9a-f]{8,})\.|/([0-9a-f]{64})/', self.url)
        return self.sha256 or (named and (named[1] or named[2]))

    @property
    def _entry(self) -> catalog.WeightsFile:
        return catalog.weights(self.names[0] if self.names else '')

    def locate(self) -> Path | None:
        """Returns the file on this machine: in the weights folder, or in the cache of the hub; None without one."""
        if self.own is not None:
            return self.own if self.own.is_file() else None
        cached = (huggingface_hub.try_to_load_from_cache(self.repository, file) for file in self.files)
        hits = (Path(hit) for hit in cached if isinstance(hit, str))
        return next(filter(None, map(find, self.names)), None) or next(hits, None)

    def download(self, keep: bool = False) -> Path:
        """Returns the file, and downloads it if it is missing.

        Args:
            keep: Put it into the weights folder; otherwise into the cache of the hub. What has a URL goes into the
                weights folder in any case.
        """
        try:
            return self.locate() or self._download(keep)
        except TPAError:
            raise
        except Exception as error:  # the clients of the hub and of PyTorch have exceptions of their own
            raise TPAError(
                f'Cannot download the weights of {self.title} ({first_sentence(error)}). Download {self.origin} on '
                f'another machine and save it as {self.target} (TPA_WEIGHTS names another folder).'
            ) from error

    def _download(self, keep: bool) -> Path:
        if self.own is not None:
            raise TPAError(f'Weights file not found: {self.own}. Copy it there, or correct the config.')
        if not self.repository:
            if self.checksum is None:
                raise TPAError(
                    f'No checksum is known for {self.url}, so it is not downloaded: download it yourself if you trust '
                    f'it, and save it as {self.target}.'
                )
            self.target.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(self.url, str(self.target), self.checksum)
            return self.target
        file = self._file_on_hub()
        if not keep:
            return Path(huggingface_hub.hf_hub_download(self.repository, file))
        # What is half downloaded stays in its folder, and the next attempt resumes it.
        folder = weights_dir() / '.downloads' / self.names[0]
        path = huggingface_hub.hf_hub_download(self.repository, file, local_dir=folder)
        target = self._target(Path(file).suffix)
        os.replace(path, target)
        shutil.rmtree(folder.parent)
        return target

    def _file_on_hub(self) -> str:
        """Returns the first of the files that the repository has.

        One request without repetitions: without a connection, ``hf_hub_download`` repeats its own for most of a minute.
        """
        for file in self.files:
            try:
                huggingface_hub.get_hf_file_metadata(huggingface_hub.hf_hub_url(self.repository, file))
                return file
            except EntryNotFoundError as error:
                missing = error
        raise missing


def clip_source(model: str, tag: str) -> Source:
    """Returns the weights of an open_clip model. Args: model: its name; tag: that of its weights."""
    settings = open_clip.get_pretrained_cfg(model, tag)
    repository, _, file = settings.get('hf_hub', '').rpartition('/')
    files = (f'{Path(file).stem}{SUFFIXES[0]}', file) if file else (HF_SAFE_WEIGHTS_NAME, HF_WEIGHTS_NAME)
    # The models with and without QuickGELU share their weights.
    names = (f'{model.removesuffix("-quickgelu")}.{tag}',)
    return Source(f'CLIP {model} ({tag})', names, repository, files if repository else (), settings.get('url', ''))


def timm_source(name: str) -> Source:
    """Returns the weights of a timm model. Args: name: with its tag."""
    config = timm.models.get_pretrained_cfg(name)
    file = config.hf_hub_filename
    files = (f'{Path(file).stem}{SUFFIXES[0]}', file) if file else ('model.safetensors', 'pytorch_model.bin')
    # Under the second name the file was first released.
    names = (f'{config.architecture}.{config.tag}', *([Path(config.url).stem] if config.url else []))
    repository = config.hf_hub_id or ''
    published = config.license or 'unknown'
    return Source(
        names[0], names, repository, files if repository else (), config.url or '', published_license=published
    )


def sam_source(model: str) -> Source:
    """Returns the weights of SAM as its authors published them. Args: model: ``'vit_b'``, ``'vit_l'``, ``'vit_h'``."""
    file = catalog.sam_weights(model)
    return Source(f'SAM {model}', (file.name,), url=file.url, sha256=file.sha256)


def own_file(path: str | os.PathLike, model: str) -> Source:
    """Returns the weights that a config names by their path. Args: model: the model they are for."""
    path = Path(os.path.normpath(local_path(path)))
    return Source(f'{model} ({path.name})', own=path)
