"""The content of a report: what is shown of each experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ...catalog import paper
from ..experiments import EXPERIMENTS
from ..folders import RunView, State
from ..suite import Suite
from .classes import class_figures, class_tables, class_views, scored_classes
from .cost import cost_table, machines, timing_table
from .curves import gain_figure, repetition_figures
from .document import Album, Photo, Section, Table, number, plain_rows, word
from .plot import Axis
from .subject import Subject, entries
from .tables import host_table, number_table, variant_table

Content = dict[str, tuple]
# How many runs a note names.
_NAMED = 5
_CHOICES = {
    'best': 'where TPA helps most',
    'typical': 'where it does as usual',
    'worst': 'where it harms most',
}


def build_sections(suite: Suite, views: Sequence[RunView], tolerance: float) -> tuple[Section, ...]:
    """A section for each experiment, and one about classes after the main table."""
    sections = []
    for name, experiment in EXPERIMENTS.items():
        mine = tuple(view for view in views if view.run.experiment == name)
        subject = Subject(suite, mine, tolerance, tuple(views))
        if mine:
            states = Counter(view.state for view in mine)
            failures = tuple((view.run.name, view.error or '') for view in mine if view.state is State.FAILED)
            content = _CONTENT[name](subject)
            content['notes'] = (*_partial(subject, mine), *content.get('notes', ()))
            sections.append(Section(name, experiment.title, experiment.about, states, failures=failures, **content))
        if name == 'main' and mine:
            sections.append(_classes(subject))
    return tuple(sections)


def _main(subject: Subject) -> Content:
    table = host_table(subject, 'main', 'mIoU of every host alone and with TPA')
    return {'notes': _averages(subject, 'main'), 'tables': (table, number_table(subject, 'main-numbers'))}


def _vfm(subject: Subject) -> Content:
    table = host_table(subject, 'vfm', "mIoU of ProxyCLIP with other encoders inside; the bank's encoder stays")
    return {'notes': _averages(subject, 'vfm'), 'tables': (table, number_table(subject, 'vfm-numbers'))}


def _composition(subject: Subject) -> Content:
    table = host_table(subject, 'composition', 'mIoU of hosts with other plug-ins, alone and with TPA on top')
    return {'tables': (table, number_table(subject, 'composition-numbers'))}


def _variants(name: str, caption: str) -> Callable[[Subject], Content]:
    def content(subject: Subject) -> Content:
        tables = variant_table(subject, name, caption), number_table(subject, f'{name}-numbers')
        return {'notes': _averages(subject, name), 'tables': tables}

    return content


def _k(subject: Subject) -> Content:
    content = _variants('k', 'Gain in mIoU for thresholds tau = k / C')(subject)
    return {**content, 'figures': gain_figure(subject, 'k', 'Gain against k', Axis('k in tau = k / C'))}


def _bank_size(subject: Subject) -> Content:
    content = _variants('bank-size', 'Gain in mIoU with parts of the pool')(subject)
    x = Axis('share of the pool', include=(0.0,), unit=' %')
    return {
        **content,
        'notes': ('Smaller pools are parts of the larger ones.',),
        'figures': gain_figure(subject, 'bank-size', 'Gain against the share of the pool', x, 100),
    }


def _repetition(subject: Subject) -> Content:
    rows = []
    for view in subject.done:
        for curve in view.result.repetition:
            for times, shares in curve.at_least.items():
                for size, share in zip(curve.sizes, shares, strict=True):
                    counts = number(size, digits=0), number(int(times), digits=0), number(100 * share, digits=1)
                    rows.append((word(subject.benchmark(view.run)), word(curve.source), *counts))
    columns = 'Benchmark', 'Seen by', 'Images', 'At least', 'Classes, %'
    table = Table('repetition', 'All numbers', columns, plain_rows(rows), labels=2, csv=True, folded=True)
    return {
        'notes': (
            'By labels (solid): a class is seen in an image when the truth has it; labels are used for this statistic '
            'only. By anchors (broken): when the host finds enough anchors of it, which needs no label.',
        ),
        'tables': (table,) if rows else (),
        'figures': repetition_figures(subject),
    }


def _overlap(subject: Subject) -> Content:
    rows = []
    for entry in entries(subject.views):
        result = entry.view.result
        split = next((one for one in result.overlap if one.key == entry.key), None) if result else None
        labels = word(subject.benchmark(entry.view.run)), word(entry.title), word(subject.state(entry.view))
        if split is None:
            rows.append((*labels, *[word('')] * 7))
            continue
        shares = number(100 * split.overlap, digits=1), number(100 * split.classes_shared, digits=1)
        images = number(split.pool_images, digits=0), number(split.evaluation_images, digits=0)
        scores = number(entry.base), number(entry.tpa), number(entry.gain, signed=True)
        rows.append((*labels, *shares, *images, *scores))
    columns = ('Benchmark', 'Pool', 'State', 'Overlap, %', 'Classes shared, %', 'Pool images', 'Evaluation images')
    columns += ('Base', 'TPA', 'Gain')
    caption = 'mIoU with pools whose classes overlap much, by chance and little with those of the evaluation images'
    table = Table('overlap', caption, columns, plain_rows(rows), labels=3, latex=True, csv=True)
    title = 'Gain against label overlap'
    return {
        'notes': (
            'Labels were used only to make these splits: to choose which images are in a pool. The banks are made '
            'from the images alone, and no image of a pool is evaluated. The evaluation images are the same for all '
            'pools, but only a part of the test set, so that their mIoU differs from that of the main table.',
        ),
        'tables': (table,),
        'figures': gain_figure(subject, 'overlap', title, Axis('overlap of pool and evaluation', unit=' %'), 100),
    }


def _cost(subject: Subject) -> Content:
    notes = machines(subject)
    if subject.comparable:
        notes.append(
            "The paper's times are of an A100: beside those of another device they say little. Its total is that of "
            'one pass of CLIP and one of the encoder, ours that of the whole host and the encoder.'
        )
    tables = cost_table(subject, 'cost'), *([timing_table(subject, 'cost-numbers')] if subject.done else [])
    return {'notes': tuple(notes), 'tables': tables}


def _pictures(subject: Subject) -> Content:
    albums = []
    for view in subject.done:
        for choice, title in _CHOICES.items():
            photos = tuple(
                Photo(view.folder.path / picture.file, picture.caption, picture.kind)
                for picture in view.result.pictures
                if picture.choice == choice
            )
            if photos:
                albums.append(Album(f'{subject.benchmark(view.run)}: {title}', photos))
    note = (
        'Green: corrected by TPA. Red: broken by it. Light gray: right with and without it. Dark gray: wrong in both.'
    )
    return {'notes': (note,) if albums else (), 'albums': tuple(albums)}


def _classes(subject: Subject) -> Section:
    """Gain of each class, from the runs of other experiments."""
    found = scored_classes(subject)
    planned = {view.run.benchmark for view in class_views(subject)}
    states = Counter({State.DONE: len(found), State.WAITING: len(planned) - len(found)})
    pointing = ('Point at a dot, or touch it, to see its class. The tables have the same numbers.',) if found else ()
    row = subject.suite.ablation
    name = f'{subject.suite.hosts[row.host]} {subject.suite.backbones[row.backbone]}'
    return Section(
        'classes',
        'Gain of each class',
        f'which classes {name} gains with TPA',
        states,
        notes=(*_partial(subject, [view for view, _ in found.values()]), *pointing),
        figures=class_figures(subject),
        tables=class_tables(subject),
    )


def _partial(subject: Subject, views: Sequence[RunView]) -> tuple[str, ...]:
    """Says which numbers are not of the images that the experiment asks for."""
    found = [f'{view.run.name} ({subject.partial(view)})' for view in views if subject.partial(view)]
    if not found:
        return ()
    more = f' and {len(found) - _NAMED} more' if len(found) > _NAMED else ''
    return (f'Not made with the number of images that is planned: {", ".join(found[:_NAMED])}{more}.',)


def _averages(subject: Subject, experiment: str) -> tuple[str, ...]:
    """Says which of the paper's printed averages are not the mean of their row, which is what ours stands beside."""
    if not subject.comparable:
        return ()
    rows = {str(view.run.row) for view in subject.views} | {entry.key for entry in entries(subject.views)}
    found = [
        f'{entry["key"]}: {entry["printed"]} instead of {entry["mean"]}'
        for entry in paper.tables()['averages_that_differ_from_the_mean']
        if entry['table'] == experiment and entry['key'] in rows
    ]
    if not found:
        return ()
    return (f"The paper's averages are the means of its cells. It prints others for {'; '.join(found)}.",)


_CONTENT: dict[str, Callable[[Subject], Content]] = {
    'main': _main,
    'vfm': _vfm,
    'components': _variants('components', 'Gain in mIoU when a part of TPA is replaced'),
    'k': _k,
    'extractor': _variants('extractor', 'Gain in mIoU with other encoders of the bank'),
    'composition': _composition,
    'bank-size': _bank_size,
    'repetition': _repetition,
    'overlap': _overlap,
    'cost': _cost,
    'pictures': _pictures,
}
