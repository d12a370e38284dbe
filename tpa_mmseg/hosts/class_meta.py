"""``dataset_meta``, names and colors of the classes, of a model that has no checkpoint to read them from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmseg.registry import DATASETS

from ..datasets.palette import class_palette


class ClassMetaMixin:
    """A model whose classes follow from its config: MMSegmentation's API paints and names them right.

    Classes that a dataset brought (:meth:`keep_meta`) come first, then those of the dataset in the config that
    ``init_model`` and ``MMSegInferencer`` leave in ``cfg``, then the names the host was given.
    """

    num_classes: int | None
    _meta: dict | None = None

    def keep_meta(self, meta: Mapping) -> None:
        """Uses the classes of a dataset from now on."""
        self._meta = dict(meta)

    def own_names(self) -> Sequence[str] | None:
        """The names that the model, or the host within it, was built with; None where it was built without."""
        inner = getattr(self, 'host', None)
        return inner.own_names() if isinstance(inner, ClassMetaMixin) else None

    @property
    def dataset_meta(self) -> dict | None:
        if self._meta is not None:
            return self._meta
        found = meta_of_config(getattr(self, 'cfg', None), self.num_classes)
        names = self.own_names()
        return found or (None if names is None else meta_of_names(names))

    @dataset_meta.setter
    def dataset_meta(self, meta: Mapping | None) -> None:
        # MMSegInferencer gives the classes of Cityscapes to every model that has no checkpoint.
        if meta is not None and self.dataset_meta is None:
            self.keep_meta(meta)


def meta_of_names(names: Sequence[str], palette: Sequence[Sequence[int]] | None = None) -> dict:
    """Names with colors; well separated ones where the palette does not fit."""
    colors = class_palette(len(names), palette)
    return {'classes': tuple(names), 'palette': [[int(value) for value in color] for color in colors]}


def meta_of_config(cfg: Mapping | None, num_classes: int | None) -> dict | None:
    """The classes of the test dataset that a config names, which need not be here; None where they do not fit."""
    dataset = ((cfg or {}).get('test_dataloader') or {}).get('dataset')
    for find in (stated_meta, _built_meta) if dataset else ():
        meta = find(dataset)
        classes = meta.get('classes') or ()
        if classes and len(classes) == num_classes:
            return meta_of_names(classes, meta.get('palette'))
    return None


def stated_meta(dataset: Mapping) -> Mapping:
    """What the class of a dataset, or its config, says."""
    kind = dataset.get('type')
    kind = DATASETS.get(kind) if isinstance(kind, str) else kind
    return {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}


def _built_meta(dataset: Mapping) -> Mapping:
    """What a dataset says whose classes depend on its options; nothing where its files are not here."""
    try:
        return DATASETS.build({**dataset, 'lazy_init': True}).metainfo
    except Exception:  # each dataset has its own way to miss its files
        return {}
