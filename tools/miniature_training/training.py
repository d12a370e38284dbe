"""The loop that all trainings share: steps, learning rate, log, and checkpoints from which to go on."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor, nn

from tpa_mmseg.console import ProgressBar, track
from tpa_mmseg.errors import TPAError
from tpa_mmseg.io import atomic_write
from tpa_mmseg.miniature.splits import paint_equal

from .muon import Muon


class Training:
    """Runs steps, and goes on where it was cut off.

    A training that was cut off and resumed gives the weights of one that was not.

    Args:
        folder: Where the checkpoint (``checkpoint.pt``) and the log (``log.jsonl``) go.
        steps: How many steps in all.
        modules: What is trained, by name; all of it is in the checkpoint.
        rng: All chance comes from here, and its state is in the checkpoint.
        rate: The highest learning rate: reached after 100 steps, then falling to 0 as a cosine.
        weight_decay: Of matrices; vectors, embeddings and the modules' ``no_decay`` names have none.
        every: Steps between two lines of the log, and between two checkpoints.
    """

    def __init__(
        self,
        folder: Path,
        steps: int,
        modules: dict[str, nn.Module],
        rng: Generator,
        rate: float,
        weight_decay: float = 0.05,
        every: int = 200,
    ) -> None:
        self.folder, self.steps, self.modules, self.rng = Path(folder), steps, nn.ModuleDict(modules), rng
        self.rate, self.every = rate, every
        self.step, self.seconds = 0, 0.0
        self.optimizers = _optimizers(self.modules, rate, weight_decay)
        self._sums: dict[str, float] = {}

    @property
    def progress(self) -> float:
        """The share of the steps that are done, from 0 to 1."""
        return self.step / self.steps

    def run(self, loss: Callable[[], tuple[Tensor, dict[str, float]]], probe: Callable[[], dict[str, float]]) -> None:
        """Trains to the end.

        Args:
            loss: One batch's loss, and figures for the log.
            probe: Measures what the network can do so far, for the log.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        bar = ProgressBar('Training', self.steps, 'steps')
        bar.done = self.step
        last = time.monotonic()
        with bar:
            while self.step < self.steps:
                figures = self._one_step(loss)
                for name, value in figures.items():
                    self._sums[name] = self._sums.get(name, 0.0) + value / self.every
                if self.step % self.every == 0 or self.step == self.steps:
                    self.seconds += time.monotonic() - last
                    bar.note = self._report(probe)
                    last = time.monotonic()
                bar.advance()

    def resume(self) -> bool:
        """Takes up the checkpoint in the folder, if there is one."""
        path = self.folder / 'checkpoint.pt'
        if not path.is_file():
            return False
        state = torch.load(path, weights_only=True)
        if state['steps'] != self.steps:
            raise TPAError(
                f'{path} belongs to a training of {state["steps"]} steps and this one has {self.steps}: '
                'give another folder, or remove it to start over.'
            )
        self.modules.load_state_dict(state['modules'])
        for optimizer, saved in zip(self.optimizers, state['optimizers'], strict=True):
            optimizer.load_state_dict(saved)
        self.rng.set_state(state['rng'])
        self.step, self.seconds = state['step'], state['seconds']
        return True

    def card(self, data: str, settings: object) -> dict:
        """For the card of the weights: what they were trained on, how, for how long, and the last line of the log."""
        last = (self.folder / 'log.jsonl').read_text('utf-8').splitlines()[-1]
        return {
            'trained_on': data,
            'settings': asdict(settings),
            'seconds': round(self.seconds),
            'threads': torch.get_num_threads(),
            'last': json.loads(last),
        }

    def _one_step(self, loss: Callable[[], tuple[Tensor, dict[str, float]]]) -> dict[str, float]:
        warm = min(1.0, (self.step + 1) / 100)
        factor = warm * (0.505 + 0.495 * math.cos(math.pi * self.progress))
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group['lr'] = self.rate * factor
        value, figures = loss()
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.modules.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        self.step += 1
        return {'loss': value.item(), **figures}

    def _report(self, probe: Callable[[], dict[str, float]]) -> str:
        """Writes a line of the log and a checkpoint. Returns the figures for the progress bar."""
        self.modules.eval()
        with torch.no_grad():
            figures = {**self._sums, **probe()}
        self.modules.train()
        self._sums = {}
        figures = {name: round(value, 4) for name, value in figures.items()}
        with (self.folder / 'log.jsonl').open('a') as log:
            log.write(json.dumps({'step': self.step, 'seconds': round(self.seconds), **figures}) + '\n')
        state = {
            'steps': self.steps,
            'step': self.step,
            'seconds': self.seconds,
            'modules': self.modules.state_dict(),
            'optimizers': [optimizer.state_dict() for optimizer in self.optimizers],
            'rng': self.rng.get_state(),
        }
        with atomic_write(self.folder / 'checkpoint.pt') as file:
            torch.save(state, file)
        return ', '.join(f'{name} {value:g}' for name, value in figures.items())


def _optimizers(modules: nn.ModuleDict, rate: float, weight_decay: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the networks, which learn in fewer steps by it, AdamW for everything else."""
    matrices, rest = [], []
    for name, parameter in modules.named_parameters():
        if parameter.requires_grad:
            inner = parameter.ndim == 2 and not any(part in name for part in ('embed', 'token', 'prototypes'))
            (matrices if inner else rest).append(parameter)
    adam = torch.optim.AdamW(rest, rate, betas=(0.9, 0.98), weight_decay=0.0)
    return [Muon(matrices, rate, weight_decay), adam] if matrices else [adam]  # convolutions alone have no matrices


def load_scenes(split: str, count: int, cache: Path) -> dict[str, np.ndarray]:
    """``images`` (n, H, W, 3), ``labels`` and ``regions`` (n, H, W) of the first scenes of a split, all uint8.

    They are painted once and kept in the cache folder.
    """
    path = Path(cache) / f'{split}_{count}.npz'
    if path.is_file():
        with np.load(path) as arrays:
            return dict(arrays)
    scenes = paint_equal(split, track(range(count), f'Painting {split}', unit='scenes'))
    arrays = {
        'images': np.stack([scene.image for scene in scenes]),
        'labels': np.stack([scene.labels for scene in scenes]),
        'regions': np.stack([scene.regions for scene in scenes]),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        np.savez(file, **arrays)
    return arrays
