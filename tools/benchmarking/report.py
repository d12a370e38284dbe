"""The benchmark's tables: one ratio per line with its target, or one case per line and where its time goes."""

from __future__ import annotations

from collections.abc import Sequence

# Columns, rows and alignment, as tpa_mmseg.console prints them.
Table = tuple[Sequence[str], list[list[str]], str]

_COLUMNS = ('What', 'Image', 'Against', 'Other', 'Ours', 'Ratio', 'Target', 'Met')


def table(entries: list[dict]) -> Table:
    """Returns the table of entries from :func:`~.measure.measure`: one line per case if all have timed stages."""
    return stage_table(entries) if all(entry['stages'] for entry in entries) else ratio_table(entries)


def ratio_table(entries: list[dict]) -> Table:
    """Returns one ratio per line."""
    return _COLUMNS, [row for entry in entries for row in (_time_row(entry), _memory_row(entry))], 'lllrrrrl'


def stage_table(entries: list[dict]) -> Table:
    """Returns one case per line: both times and our stages, both peaks, and the targets that are missed."""
    names = list(entries[0]['stages'])
    columns = ('What', 'Image', 'Other', 'Ours', 'Faster', *names, 'Peak, other', 'Peak, ours', 'Share', 'Targets')
    rows = []
    for entry in entries:
        seconds, peaks = entry['seconds'], entry['peak_mb']
        times = [seconds['other'], seconds['ours'], *(entry['stages'][name] for name in names)]
        other, ours, *stages = map(_seconds, times)
        memory = [f'{peaks["other"]:.0f} MB', f'{peaks["ours"]:.0f} MB', f'{entry["memory_ratio"]:.2f}']
        faster = f'{entry["times_faster"]:.2f} x'
        rows.append([entry['title'], entry['setting'], other, ours, faster, *stages, *memory, _targets(entry['met'])])
    return columns, rows, 'll' + 'r' * (len(columns) - 3) + 'l'


def gpu_table(entries: list[dict], paper: dict[str, float]) -> Table:
    """Returns the milliseconds of each stage, with launches and waits where a GPU was measured, above the paper's.

    Args:
        entries: From :func:`~.gpu.measure_host`.
        paper: The paper's costs, stage -> milliseconds.
    """
    stages = list(entries[0]['stages'])
    rows = []
    for entry in entries:
        used = ' / '.join(dict.fromkeys(entry['used'].values()))
        peak = '-' if entry['peak_mb'] is None else f'{entry["peak_mb"]:.0f} MB'
        figures = [_stage(entry['stages'][stage]) for stage in stages]
        rows.append([entry['host'], used, *figures, peak, f'{entry["images_per_second"]:.1f}'])
    rows.append(
        ['The paper, A100', '', *(f'{paper[stage]:g}' if stage in paper else '-' for stage in stages), '-', '-']
    )
    columns = ('Host', 'Precision', *(stage.replace('_', ' ') for stage in stages), 'Peak', 'Images / s')
    return columns, rows, 'll' + 'r' * (len(columns) - 2)


def _stage(figures: dict) -> str:
    """``milliseconds (launches, waits)``."""
    milliseconds = f'{figures["milliseconds"]:.3g}'
    if figures['launches'] is None:
        return milliseconds
    return f'{milliseconds} ({figures["launches"]}, {figures["synchronizations"]})'


def _targets(met: dict[str, bool]) -> str:
    missed = [name for name, key in (('time', 'times_faster'), ('memory', 'memory_ratio')) if not met.get(key, True)]
    return f'{" and ".join(missed)} missed' if missed else 'met'


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
