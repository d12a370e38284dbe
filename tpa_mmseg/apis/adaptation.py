"""The bank of a Segmenter: pictures folded in one by one, and the same pool with another ``k``."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import replace

from ..core import PrototypeBank
from ..errors import TPAError
from ..segmentors import TPASegmentor
from .picture import Picture
from .result import Outputs


class Adaptation:
    """A bank that grows with every picture.

    Args:
        model: Host and encoder.
        outputs: Gives what they say about a picture.
        k: Of the anchors; None for the model's own.
        remember: How many pictures in memory stay there, so that their bank can be made again with another ``k``.
    """

    def __init__(
        self, model: TPASegmentor, outputs: Callable[[Picture], Outputs], k: float | None, remember: int
    ) -> None:
        self._model, self._outputs, self._remember = model, outputs, remember
        self._pool: list[Picture] | None = []
        self._use(self._empty(k))
        self.bank.fingerprint = model.fingerprint()

    def _use(self, bank: PrototypeBank) -> None:
        self.bank = bank
        self._held = set(bank.pool)
        self._others: dict[float, PrototypeBank] = {}

    def _empty(self, k: float | None) -> PrototypeBank:
        bank = self._model.new_bank()
        if k is not None:
            bank.rule = replace(bank.rule, k=k)
        return bank

    def fold_in(self, picture: Picture, remember: bool = True) -> None:
        """Folds a picture in, unless the bank holds it already.

        Args:
            picture: The picture.
            remember: Whether a bank with another ``k`` may ask for it again.
        """
        if picture.key in self._held:
            return
        outputs = self._outputs(picture)
        self.bank.update(outputs.scores, outputs.phi)
        self.bank.pool.append(picture.key)
        self._held.add(picture.key)
        self._others.clear()
        too_many = picture.path is None and len(self._pool or ()) >= self._remember
        if not remember or too_many:
            self._pool = None
        elif self._pool is not None:
            self._pool.append(picture)

    def with_k(self, k: float) -> PrototypeBank:
        """The bank with another ``k``, from the same pictures."""
        if k == self.bank.rule.k:
            return self.snapshot()
        if self._pool is None:
            raise TPAError(
                f'k is {self.bank.rule.k} for good in a bank from a file or a stream: build one with k={k} instead.'
            )
        if k not in self._others:
            bank = self._empty(k)
            bank.fingerprint, bank.pool = self.bank.fingerprint, list(self.bank.pool)
            for picture in self._pool:
                outputs = self._outputs(picture)
                bank.update(outputs.scores, outputs.phi)
            self._others[k] = bank
        return self._others[k]

    def snapshot(self) -> PrototypeBank:
        """The bank as it is now, whatever is folded in later."""
        bank = copy.copy(self.bank)  # an update makes new sums and counts
        bank.pool = list(bank.pool)
        return bank

    def load(self, path: str | os.PathLike) -> None:
        """Goes on with a saved bank."""
        self._model.set_bank(None, path)
        self._model.load_bank()
        self._use(self._model.bank)
        self._pool = None
