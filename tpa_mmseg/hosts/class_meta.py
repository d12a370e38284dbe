"""``dataset_meta`` (names and colors of classes) of models without a checkpoint that contains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmengine.registry import DefaultScope
from mmseg.registry import DATASETS

from ..datasets.palette import class_palette


class ClassMetaMixin:
    """A model whose classes follow from its config, so that MMSegmentation's API shows the right names and colors.

    The classes are, in this order, those of :meth:`keep_meta`, those of the dataset in the config that ``init_model``
    and ``MMSegInferencer`` store as ``cfg``, or the class names of the host.
    """

    _meta: dict | None = None

    def keep_meta(self, meta: Mapping) -> None:
        """Uses the classes of a dataset from now on."""
        self._meta = dict(meta)

    def own_names(self) -> Sequence[str] | None:
        """Returns the class names that the model, or the host inside it, was built with; None without any."""
        inner = getattr(self, 'host', None)
        return inner.own_names() if isinstance(inner, ClassMetaMixin) else None

    @property
    def dataset_meta(self) -> dict | None:
        if self._meta is not None:
            return self._meta
        found = meta_of_config(getattr(self, 'cfg', None), getattr(self, 'num_classes', None))
        names = self.own_names()
        return found or (None if names is None else meta_of_names(names))

    @dataset_meta.setter
    def dataset_meta(self, meta: Mapping | None) -> None:
        # MMSegInferencer sets the classes of Cityscapes for every model without a checkpoint.
        if meta is not None and self.dataset_meta is None:
            self.keep_meta(meta)


def meta_of_names(names: Sequence[str], palette: Sequence[Sequence[int]] | None = None) -> dict:
    """Returns names with colors: those of the palette, or distinct ones if the palette does not fit."""
    colors = class_palette(len(names), palette)
    return {'classes': tuple(names), 'palette': [[int(value) for value in color] for color in colors]}


def meta_of_config(cfg: Mapping | None, num_classes: int | None) -> dict | None:
    """Returns the classes of a config's test dataset, whose files may be missing; None if they do not fit."""
    dataset = ((cfg or {}).get('test_dataloader') or {}).get('dataset')
    for find in (stated_meta, _built_meta) if dataset else ():
        meta = find(dataset)
        classes = meta.get('classes') or ()
        if classes and len(classes) == num_classes:
            return meta_of_names(classes, meta.get('palette'))
    return None


def stated_meta(dataset: Mapping) -> Mapping:
    """Reads the classes off the class of a dataset, or off its config."""
    kind = dataset.get('type')
    kind = DATASETS.get(kind) if isinstance(kind, str) else kind
    return {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}


def _built_meta(dataset: Mapping) -> Mapping:
    """Reads the classes of a dataset that depend on its options; empty if its files are missing."""
    try:
        # Transforms of its pipeline are looked for in the default scope.
        with DefaultScope.overwrite_default_scope('mmseg'):
            return DATASETS.build({**dataset, 'lazy_init': True}).metainfo
    except Exception:  # every dataset fails in its own way if its files are missing
        return {}
