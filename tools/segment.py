#!/usr/bin/env python
"""Segments pictures and videos with classes of your own, with and without TPA."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tpa_tools.command import run_tool

if TYPE_CHECKING:
    from tpa_mmseg import Segmenter
    from tpa_mmseg.apis import Result, Skipped
    from tpa_mmseg.apis.inputs import Collected
    from tpa_mmseg.apis.saving import OutputFolder


def parse_args(argv: Sequence[str] | None, prog: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    parser.add_argument('images', nargs='+', metavar='IMAGE', help='pictures, folders of pictures, videos')
    parser.add_argument(
        '--classes',
        nargs='+',
        metavar='CLASS',
        help='classes, each an argument or separated by commas, with synonyms after semicolons (cat "tv; television"); '
        'a text file with one class per line; or a packaged list, e.g. ade20k',
    )
    parser.add_argument('--out', required=True, metavar='DIR', help='where results go')
    parser.add_argument(
        '--host', default='sclip', help='name of a host, e.g. naclip or proxyclip, or a config file (default: sclip)'
    )
    parser.add_argument(
        '--backbone', default='auto', help='vit-b16, vit-l14, vit-h14 or mini-b8 (default: vit-b16 where it is here)'
    )
    parser.add_argument(
        '--background',
        nargs='?',
        const=True,
        default=False,
        metavar='WORDS',
        help='add a class for all else; words that describe it, separated by commas',
    )
    parser.add_argument('--threshold', type=float, help='pixels less probable than this become background')
    parser.add_argument('--pool', nargs='+', metavar='DIR', help='adapt to these pictures (default: IMAGEs themselves)')
    parser.add_argument('--bank', metavar='FILE', help='start with a saved bank')
    parser.add_argument('--save-bank', metavar='FILE', help='save the bank')
    parser.add_argument('--no-tpa', action='store_true', help='the host alone')
    parser.add_argument('--alpha', type=float, help='share of the host (default: 0.5)')
    parser.add_argument('--lambda', type=float, dest='lambda_', help='weight of TPA (default: 5)')
    parser.add_argument('--k', type=float, help='how sure an anchor is (default: 2)')
    parser.add_argument(
        '--frame-stride', type=int, default=1, metavar='N', help='process every N-th video frame (default: 1)'
    )
    parser.add_argument('--device', help='such as cuda:1 (default: the best there is)')
    args = parser.parse_args(argv)
    if args.no_tpa and (args.pool or args.bank or args.save_bank):
        parser.error('--no-tpa has no use for --pool, --bank or --save-bank')
    return args


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    run_tool(run, parse_args(argv, prog))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg import Segmenter
    from tpa_mmseg.apis.inputs import Collected, collect, is_video
    from tpa_mmseg.apis.saving import OutputFolder
    from tpa_mmseg.apis.segmenter import SkippedWarning
    from tpa_mmseg.apis.video import Video
    from tpa_mmseg.console import track

    # Before the networks are loaded, which takes a while.
    videos = [Video(path, args.frame_stride) for path in args.images if is_video(path)]
    files = [path for path in args.images if not is_video(path)]
    found = collect(files) if files else Collected()
    warnings.simplefilter('ignore', SkippedWarning)  # they are named at the end
    model = Segmenter(
        args.classes[0] if args.classes and len(args.classes) == 1 else args.classes,
        args.host,
        args.backbone,
        background=args.background,
        threshold=args.threshold,
        tpa=not args.no_tpa,
        bank=args.bank,
        alpha=args.alpha,
        lambda_=args.lambda_,
        k=args.k,
        device=args.device,
    )
    if args.pool:
        model.adapt(args.pool)
    elif found.pictures and not args.no_tpa and not args.bank:
        model.adapt(found)

    out = OutputFolder(args.out, found.pictures)
    totals = Totals()
    segment_pictures(model, found, out, totals)
    for video in videos:
        # Frames come one by one, so the bank grows with them unless it was given.
        results = model.stream(video, grow=not args.no_tpa and not args.pool and not args.bank)
        bar = track(results, video.path.name, video.count, unit='frames')
        out.add_video(video, (totals.count(result) for result in bar))
    out.finish(found.skipped)
    if args.save_bank:
        model.save_bank(args.save_bank)
    report(model, args, totals, found.skipped)


def segment_pictures(model: Segmenter, found: Collected, out: OutputFolder, totals: Totals) -> None:
    from tpa_mmseg.apis.picture import Unreadable
    from tpa_mmseg.console import track

    for picture in track(list(found.pictures), 'Segmenting'):
        try:
            out.add(totals.count(model.segment(picture)))
        except Unreadable as error:
            found.skip(picture, str(error))


class Totals:
    """The areas of all pictures and frames together."""

    def __init__(self) -> None:
        self.images = 0
        self.shares: dict[str, list[float]] = {}

    def count(self, result: Result) -> Result:
        """Adds a result, and passes it on."""
        self.images += 1
        for area in result.areas():
            sums = self.shares.setdefault(area.name, [0.0, 0.0])
            sums[0] += area.host_share
            sums[1] += area.share
        return result

    def rows(self) -> list[tuple]:
        """Name, mean share by the host and with TPA in percent, of every class that occurs."""
        return [
            (name, *(100 * share / self.images for share in shares))
            for name, shares in self.shares.items()
            if any(shares)
        ]


def report(model: Segmenter, args: argparse.Namespace, totals: Totals, skipped: list[Skipped]) -> None:
    from tpa_mmseg.console import print_table
    from tpa_mmseg.errors import TPAError

    for each in skipped:
        print(f'Skipped {each}', file=sys.stderr)
    if not totals.images:
        raise TPAError('None of the images could be read.')
    rows = totals.rows()
    if args.no_tpa:
        print_table(['Class', 'Area, %'], [row[:2] for row in rows])
    else:
        print(model.describe_bank())
        print_table(['Class', 'Host: area, %', 'TPA: area, %'], rows)
    print(f'{totals.images} images are in {Path(args.out)}: overlays, labels, comparisons, areas.json.')


if __name__ == '__main__':
    main()
