#!/usr/bin/env python
"""Shows what is in a bank: anchors, agreement of its halves, classes that are alike, and its diagnosis."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpa_tools.command import run_tool

if TYPE_CHECKING:
    from PIL import Image
    from torch import Tensor

# Pairs of classes in the table; largest side of the picture in inches, beyond which names would not be read anyway.
_PAIRS, _LARGEST = 8, 40


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    parser.add_argument('command', choices=('inspect',), help='what to do')
    parser.add_argument('file', metavar='FILE', help='file of a bank')
    parser.add_argument('--out', metavar='PNG', help='where a picture of the similarities of classes goes')
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.console import print_table
    from tpa_mmseg.core import PrototypeBank
    from tpa_mmseg.errors import printable
    from tpa_mmseg.evaluation import describe_bank
    from tpa_mmseg.io import write_png

    bank = PrototypeBank.load(args.file)
    names = _names(bank.fingerprint.get('classes'), bank.num_classes)
    agreement = bank.centered_prototypes().agreement.tolist()
    prototypes = bank.prototypes()
    cosines = prototypes.vectors @ prototypes.vectors.T
    rows = []
    for number in range(bank.num_classes):
        known = agreement[number] != 0
        rows.append((names[number], int(bank.counts[number]), f'{agreement[number]:.2f}' if known else '-'))
    print_table(['Class', 'Anchors', 'Agreement of halves'], rows)
    print_table(['Classes most alike', 'Cosine'], _most_alike(cosines, prototypes.classes, names))
    print(describe_bank(bank, names))
    if bank.diagnosis is None:
        print('Whether labels follow the image was not measured.')
    else:
        found = bank.diagnosis
        print(
            f'kappa_0 {found.kappa_0:.3f}, kappa_inf {found.kappa_inf:.3f}, rho {found.rho:.3f}, '
            f'beta2 {found.beta2:.3g} (consistent TPA)'
        )
    for part, value in bank.fingerprint.items():
        if part != 'classes':
            print(printable(f'{part}: {json.dumps(value)}'))
    if args.out:
        covered = list(prototypes.classes)
        write_png(args.out, _heat_map(cosines[covered][:, covered], [names[number] for number in covered]))
        print(f'The picture is in {args.out}.')


def _names(classes: object, count: int) -> list[str]:
    """Names of the classes, or their numbers: a file is trusted in nothing."""
    from tpa_mmseg.errors import printable

    known = isinstance(classes, list) and len(classes) == count
    return [printable(str(name)) for name in (classes if known else range(count))]


def _most_alike(cosines: Tensor, covered: Sequence[int], names: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of classes whose prototypes have the largest cosines."""
    pairs = [(float(cosines[a, b]), a, b) for at, a in enumerate(covered) for b in covered[at + 1 :]]
    return [(f'{names[a]}, {names[b]}', f'{cosine:.2f}') for cosine, a, b in sorted(pairs, reverse=True)[:_PAIRS]]


def _heat_map(cosines: Tensor, names: Sequence[str]) -> Image.Image:
    """Draws similarities. Args: cosines: (n, n); names: of the n classes."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    side = min(_LARGEST, 3 + 0.3 * len(names))
    # Not by pyplot, which would look for a screen.
    figure = Figure((side + 1, side), dpi=100, layout='constrained')
    canvas, axes = FigureCanvasAgg(figure), figure.subplots()
    # A name may contain $, which is no formula.
    shown = [name.replace('$', r'\$') for name in names]
    picture = axes.imshow(cosines.numpy(), cmap='viridis', vmax=1)
    axes.set_xticks(range(len(names)), shown, rotation=90, fontsize=9)
    axes.set_yticks(range(len(names)), shown, fontsize=9)
    axes.set_title('Cosine between prototypes')
    figure.colorbar(picture, ax=axes, shrink=0.8)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())


if __name__ == '__main__':
    main()
