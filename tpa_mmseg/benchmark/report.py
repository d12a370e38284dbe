"""The benchmark's tables: one ratio per row, with its target; and where the time goes."""

from __future__ import annotations

from ..evaluation.table import render

_COLUMNS = ('What', 'Image', 'Against', 'Other', 'Ours', 'Ratio', 'Target', 'Met')


def ratio_table(entries: list[dict], markdown: bool = False) -> str:
    """Draws the entries that :func:`~tpa_mmseg.benchmark.measure.measure` gave."""
    rows = [row for entry in entries for row in (_time_row(entry), _memory_row(entry))]
    return render(_COLUMNS, rows, align='lllrrrrl', markdown=markdown)


def stage_table(entries: list[dict], markdown: bool = False) -> str:
    """Where the time of our way goes, for entries whose stages were timed; '' where there are none."""
    timed = [entry for entry in entries if entry['stages']]
    if not timed:
        return ''
    names = list(timed[0]['stages'])
    rows = [[entry['title'], entry['setting'], *(_seconds(entry['stages'][name]) for name in names)] for entry in timed]
    return render(('What', 'Image', *names), rows, align='ll' + 'r' * len(names), markdown=markdown)


def _time_row(entry: dict) -> list[str]:
    figures = [_seconds(entry['seconds'][way]) for way in ('other', 'ours')]
    ratio, target = f'{entry["times_faster"]:.1f} x faster', f'>= {entry["targets"]["times_faster"]:g} x'
    return [
        f'{entry["title"]}: time',
        entry['setting'],
        entry['against'],
        *figures,
        ratio,
        target,
        _yes(entry['met']['times_faster']),
    ]


def _memory_row(entry: dict) -> list[str]:
    figures = [f'{entry["peak_mb"][way]:.0f} MB' for way in ('other', 'ours')]
    targets, met = entry['targets'], entry['met']
    wanted = {
        'memory_ratio': targets['memory_ratio'] and f'<= 1/{1 / targets["memory_ratio"]:g}',
        'memory_mb': targets['memory_mb'] and f'<= {targets["memory_mb"]:g} MB',
    }
    kept = [key for key, text in wanted.items() if text]
    return [
        f'{entry["title"]}: peak memory',
        entry['setting'],
        entry['against'],
        *figures,
        f'1/{1 / entry["memory_ratio"]:.0f}',
        ', '.join(wanted[key] for key in kept) or '-',
        _yes(all(met[key] for key in kept)) if kept else '-',
    ]


def _seconds(value: float) -> str:
    return f'{1000 * value:.0f} ms' if value < 1 else f'{value:.2f} s'


def _yes(value: bool) -> str:
    return 'yes' if value else 'NO'
