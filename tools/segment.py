#!/usr/bin/env python
"""Segments images and videos with user-defined classes, with and without TPA."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tpa_tools.command import add_launch_options, add_shard_options, run_tool

if TYPE_CHECKING:
    from tpa_mmseg import Segmenter
    from tpa_mmseg.apis import Segmentation, Skipped, Video
    from tpa_mmseg.apis.images import ImageList
    from tpa_mmseg.apis.saving import OutputFolder


def parse_args(argv: Sequence[str] | None, prog: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    parser.add_argument('images', nargs='+', metavar='IMAGE', help='images, folders of images, videos')
    parser.add_argument(
        '--classes',
        nargs='+',
        metavar='CLASS',
        help='classes, each an argument or separated by commas, with synonyms after semicolons (cat "tv; television"); '
        'a text file with one class per line; or a packaged list, e.g. ade20k',
    )
    parser.add_argument('--out', required=True, metavar='DIR', help='output folder')
    parser.add_argument(
        '--host', default='sclip', help='name of a host, e.g. naclip or proxyclip, or a config file (default: sclip)'
    )
    parser.add_argument(
        '--backbone',
        default='vit-b16',
        help='CLIP model of the host: vit-b16, vit-l14, vit-h14; or mini-b8, the tiny model for synthetic scenes that '
        'comes with the package, also called miniature (default: %(default)s)',
    )
    parser.add_argument(
        '--background',
        nargs='?',
        const=True,
        default=False,
        metavar='WORDS',
        help='add a class for everything else; words that describe it, separated by commas',
    )
    parser.add_argument('--threshold', type=float, help='pixels less probable than this become background')
    parser.add_argument('--pool', nargs='+', metavar='DIR', help='adapt to these images (default: the IMAGEs)')
    parser.add_argument(
        '--pool-size', type=int, default=100, metavar='N', help='most images of the pool; 0 for all (default: 100)'
    )
    parser.add_argument('--bank', metavar='FILE', help='start with a saved bank')
    parser.add_argument('--save-bank', metavar='FILE', help='save the bank')
    parser.add_argument('--no-tpa', action='store_true', help='segment by the host alone')
    parser.add_argument('--alpha', type=float, help='share of the host (default: 0.5)')
    parser.add_argument('--lambda', type=float, dest='lambda_', help='weight of TPA (default: 5)')
    parser.add_argument('--k', type=float, help='confidence of anchors, as a multiple of chance (default: 2)')
    parser.add_argument(
        '--consistent',
        action='store_true',
        default=None,
        help="ours, not the paper's: look at the pool again, and add a second lookup if labels do not follow the image",
    )
    parser.add_argument(
        '--frame-stride', type=int, default=1, metavar='N', help='process every N-th video frame (default: 1)'
    )
    parser.add_argument(
        '--grow',
        action='store_true',
        help='let the bank grow with every frame while a video runs (default: build it first, from frames spread over '
        'the video)',
    )
    parser.add_argument('--device', help='torch device, e.g. cuda:1 (default: CUDA if available)')
    shards = parser.add_argument_group(
        'bulk work',
        'IMAGE may also be a tar or Parquet file, a pattern, a list of files, or an address such as s3://...',
    )
    add_shard_options(shards)
    shards.add_argument(
        '--labels', choices=('png', 'rle'), default='png', help='label images in a tar (default), or masks in Parquet'
    )
    add_launch_options(parser, 'shard', shared=False)
    args = parser.parse_args(argv)
    if args.shards is None and args.launcher != 'local':
        parser.error(f'--launcher {args.launcher} needs --shards')
    if args.save_bank and args.shards:
        parser.error('--save-bank is not needed with --shards: the bank is in the output folder')
    if args.no_tpa and (args.pool or args.bank or args.save_bank or args.grow):
        parser.error('--no-tpa cannot be combined with --pool, --bank, --save-bank or --grow')
    if args.grow and args.shards:
        parser.error('--grow is for videos, and --shards are of images')
    if args.consistent and args.shards:
        parser.error('--consistent cannot be used with --shards: shards do not look at the pool a second time')
    if args.pool_size < 0:
        parser.error(f'--pool-size must be at least 0, got {args.pool_size}')
    return args


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    run_tool(run, parse_args(argv, prog))


def run(args: argparse.Namespace) -> None:
    classes = read_classes(args)
    model = dict(
        classes=classes,
        host=args.host,
        backbone=args.backbone,
        background=args.background,
        threshold=args.threshold,
        tpa=not args.no_tpa,
        alpha=args.alpha,
        lambda_=args.lambda_,
        k=args.k,
        consistent=args.consistent,
        device=args.device,
    )
    if args.shards is None:
        run_here(args, model)
    else:
        run_shards(args, model)


def run_shards(args: argparse.Namespace, model: dict) -> None:
    """Segments any number of images in shards."""
    from tpa_mmseg.bulk import BulkJob, list_parts, segment
    from tpa_mmseg.launch import LaunchOptions

    host = str(Path(args.host).absolute()) if args.host.endswith('.py') else args.host
    how = args.shards, args.labels, args.batch_size, args.image_column, args.bank
    job = BulkJob(Path(args.out), {**model, 'host': host}, *how)
    pool = list_parts(args.pool) if args.pool else None
    manifest = segment(job, list_parts(args.images), LaunchOptions.of(args), pool, args.pool_size)
    if manifest is not None:
        shares = zip(manifest['classes'], manifest['host_share'], manifest['share'], strict=True)
        rows = [(name, 100 * host, 100 * tpa) for name, host, tpa in shares if host or tpa]
        print_areas(rows, args.no_tpa)
        skipped = f', skipped {len(manifest["skipped"])}' if manifest['skipped'] else ''
        print(f'Segmented {manifest["images"]:,} images{skipped}; {job.out}/manifest.json lists what is where.')


def run_here(args: argparse.Namespace, model: dict) -> None:
    """Segments images and videos in this process, and draws them."""
    from tpa_mmseg import Segmenter
    from tpa_mmseg.apis import CaveatWarning, SkippedWarning, Video
    from tpa_mmseg.apis.images import ImageList, is_video, list_images
    from tpa_mmseg.apis.saving import OutputFolder
    from tpa_mmseg.console import track

    # Before the models are loaded, which takes a while.
    videos = [Video(path, args.frame_stride) for path in args.images if is_video(path)]
    files = [path for path in args.images if not is_video(path)]
    found = list_images(files) if files else ImageList()
    for each in (SkippedWarning, CaveatWarning):  # they are named at the end
        warnings.simplefilter('ignore', each)
    segmenter = Segmenter(**model, bank=args.bank)
    if args.pool:
        segmenter.adapt(args.pool, args.pool_size or None)
    elif not args.no_tpa and not args.bank:
        adapt_to_all(segmenter, found, [] if args.grow else videos, args.pool_size)

    out = OutputFolder(args.out, found.images)
    totals = Totals()
    segment_images(segmenter, found, out, totals)
    for video in videos:
        results = segmenter.stream(video, update_bank=args.grow)
        bar = track(results, video.path.name, video.count, unit='frames')
        out.add_video(video, (totals.count(result) for result in bar))
    out.finish(found.skipped)
    if args.save_bank:
        segmenter.save_bank(args.save_bank)
    report(segmenter, args, totals, found.skipped)


def adapt_to_all(segmenter: Segmenter, found: ImageList, videos: list[Video], size: int) -> None:
    """Builds the bank from all that is segmented, each video with the share of an image folder in the pool."""
    from tpa_mmseg.console import track

    sources = len(videos) + bool(found.images)
    share = max(1, size // sources) if size and sources else None
    if found.images:
        segmenter.adapt(found, share)
    for video in videos:
        for frame in track(video.sample(share), f'Building the bank from {video.path.name}', unit='frames'):
            segmenter.adapt(frame)


def read_classes(args: argparse.Namespace) -> list[list[str]] | None:
    """Returns the names of each class, and prints them; None for the classes of a config."""
    from tpa_mmseg.clip.names import ClassNames
    from tpa_mmseg.errors import TPAError

    if args.classes is None:
        if not args.host.endswith('.py'):
            raise TPAError('--classes is required, e.g. --classes cat sofa "tv; television"')
        return None
    names = ClassNames.read(args.classes[0] if len(args.classes) == 1 else args.classes)
    print(names, flush=True)
    return [list(synonyms) for synonyms in names.names]


def segment_images(segmenter: Segmenter, found: ImageList, out: OutputFolder, totals: Totals) -> None:
    from tpa_mmseg.apis.images import UnreadableImage
    from tpa_mmseg.console import track

    for image in track(list(found.images), 'Segmenting'):
        try:
            out.add(totals.count(segmenter.segment_one(image)))
        except UnreadableImage as error:
            found.skip(image, str(error))


class Totals:
    """The areas of all images and frames together."""

    def __init__(self) -> None:
        self.images = 0
        self.changed = False
        self.shares: dict[str, list[float]] = {}

    def count(self, result: Segmentation) -> Segmentation:
        """Adds a segmentation and returns it."""
        self.images += 1
        self.changed |= result.changed_fraction > 0
        for area in result.areas:
            sums = self.shares.setdefault(area.name, [0.0, 0.0])
            sums[0] += area.host_share
            sums[1] += area.share
        return result

    def rows(self) -> list[tuple]:
        """Returns name, mean share by the host and with TPA in percent of every class that occurs."""
        return [
            (name, *(100 * share / self.images for share in shares))
            for name, shares in self.shares.items()
            if any(shares)
        ]


def report(segmenter: Segmenter, args: argparse.Namespace, totals: Totals, skipped: list[Skipped]) -> None:
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.evaluation import unchanged_caveat

    for each in skipped:
        print(f'Skipped {each}', file=sys.stderr)
    if not totals.images:
        raise TPAError('None of the images could be read.')
    caveats = []
    if not args.no_tpa:
        print(segmenter.describe_bank())
        caveats = segmenter.caveats()
        if not totals.changed and not caveats:
            caveats = [unchanged_caveat(segmenter.fusion, segmenter.bank.rule, len(segmenter.classes))]
    print_areas(totals.rows(), args.no_tpa, caveats)
    print(f'Wrote {totals.images} images to {Path(args.out)}: overlays, labels, comparisons, areas.json.')


def print_areas(rows: list[tuple], host_alone: bool, caveats: Sequence[str] = ()) -> None:
    """Prints a table.

    Args:
        rows: Name, mean share by the host and with TPA in percent of every class that occurs.
        host_alone: Whether there is no TPA.
        caveats: Why TPA says little here.
    """
    from tpa_mmseg.console import print_table

    if host_alone:
        print_table(['Class', 'Area, %'], [row[:2] for row in rows])
    else:
        print_table(['Class', 'Host: area, %', f'TPA{" (!)" * bool(caveats)}: area, %'], rows)
    for text in caveats:
        print(f'(!) {text}')


if __name__ == '__main__':
    main()
