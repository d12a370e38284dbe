"""Shards give the bank and the labels of one process, whatever their number, their source and their batches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.bulk.world import MODEL, read_labels, write_files, write_parquet, write_tar
from tests.helpers.miniature_world import config_path
from tests.helpers.world import run_in_process
from tpa_mmseg.apis import ImageSource, Segmenter
from tpa_mmseg.bulk import BulkJob, build_bank, list_parts, mask_of, segment
from tpa_mmseg.bulk.shard import BankShard, SegmentShard, Shard
from tpa_mmseg.bulk.source import Part, split
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.errors import TPAError
from tpa_mmseg.launch import LaunchOptions, State
from tpa_mmseg.launch.execute import execute

HERE = LaunchOptions()


def execute_all(kind: type[Shard], job: BulkJob, parts: list[Part]) -> list[Shard]:
    """Executes the shards in this process, so that a launcher has nothing left to start."""
    shards = [kind(job, number, share) for number, share in enumerate(split(parts, job.shards))]
    for shard in shards:
        execute(shard)
        assert shard.state() is State.DONE, shard.look()[1]
    return shards


def same(ours: PrototypeBank, other: PrototypeBank) -> None:
    """Checks that banks are equal to 1e-9 and have the same images."""
    assert ours.counts.tolist() == other.counts.tolist() and ours.images == other.images > 0
    torch.testing.assert_close(ours.sums.cpu(), other.sums.cpu(), rtol=1e-9, atol=1e-9)
    assert sorted(ours.pool) == sorted(other.pool) and ours.fingerprint == other.fingerprint


def test_merged_banks_are_that_of_one_process_and_can_be_extended(
    few: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    names = list(few)
    write_files(tmp_path / 'source', {name: few[name] for name in names[:11]})
    write_tar(tmp_path / 'source/a.tar', {name: few[name] for name in names[11:]})
    parts = list_parts([tmp_path / 'source'])
    one = Segmenter(**MODEL, progress=False)
    one.adapt([ImageSource(name, content) for name, content in few.items()])
    job = BulkJob(tmp_path / 'out', MODEL, 3)
    execute_all(BankShard, job, parts)
    bank = build_bank(job, parts, HERE, tmp_path / 'bank')
    same(bank, one.bank)
    same(PrototypeBank.load(tmp_path / 'bank'), bank)
    assert '3 of 3 shards are done; 0 to run' in (out := capsys.readouterr().out) and 'Bank of 30 images' in out
    # Adding the same source to a bank of its first images adds the others.
    first = BulkJob(tmp_path / 'first', MODEL, 1)
    execute_all(BankShard, first, parts[:11])
    build_bank(first, parts[:11], HERE, tmp_path / 'small')
    rest = BulkJob(tmp_path / 'rest', MODEL, 2, bank=tmp_path / 'small')
    assert sum(shard.summary['images'] for shard in execute_all(BankShard, rest, parts)) == 19
    same(build_bank(rest, parts, HERE, tmp_path / 'extended'), bank)


def test_bank_of_a_config_is_that_of_one_process(
    few: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = write_files(tmp_path / 'source', few)
    common = [config_path('sclip_mini-b8'), '--pool', folder, '--cfg-options', 'model.anchors.k=1.5']
    bulk = ['build_bank', *common, '--out', tmp_path / 'bulk', '--shards', 2]
    run_in_process(*bulk, '--dry-run')
    parts = tmp_path / 'bulk.parts'
    execute_all(BankShard, BulkJob(parts, {'classes': None, 'host': str(parts / 'config.py')}, 2), list_parts([folder]))
    run_in_process(*bulk)
    assert '2 of 2 shards are done; 0 to run' in (out := capsys.readouterr().out) and 'The bank is in' in out
    run_in_process('build_bank', *common, '--out', tmp_path / 'one', '--work-dir', tmp_path, '--pool-size', len(few))
    bulk, one = (PrototypeBank.load(tmp_path / name) for name in ('bulk', 'one'))
    # One names its images by their paths, the other by their content.
    assert one.fingerprint.pop('pool')['images'] == bulk.images and bulk.rule.k == 1.5
    one.pool = bulk.pool
    same(bulk, one)


@pytest.mark.parametrize(
    ('form', 'source', 'shards', 'batch'), (('png', 'folder', 3, 1), ('rle', 'tar', 2, 4), ('png', 'parquet', 2, 3))
)
def test_labels_are_those_of_the_plain_loop(
    form: str,
    source: str,
    shards: int,
    batch: int,
    few: dict[str, bytes],
    bank: Path,
    labels: dict[str, np.ndarray],
    tmp_path: Path,
) -> None:
    place = tmp_path / 'source'
    place.mkdir()
    few = {**few, 'broken.png': b'\x89PNG broken'}
    if source == 'folder':
        write_files(place, few)
    elif source == 'tar':
        write_tar(place / 'a.tar', few)
    else:
        write_parquet(place / 'a.parquet', few)
    parts = list_parts([place])
    job = BulkJob(tmp_path / 'out', MODEL, shards, form, batch, bank=bank)
    execute_all(SegmentShard, job, parts)
    manifest = segment(job, parts, HERE)
    assert manifest == json.loads((job.out / 'manifest.json').read_text())
    assert manifest['images'] == len(few) - 1 and manifest['classes'] == MODEL['classes']
    names = [f'a.{source}/{row:08d}' for row in range(len(few))] if source == 'parquet' else list(few)
    names = [f'a.tar/{name}' for name in names] if source == 'tar' else names
    (skipped,) = manifest['skipped']
    assert skipped['name'] == names[-1] and 'not one of the formats' in skipped['reason']
    expected = {new: labels[old] for new, old in zip(names[:-1], few, strict=False)}
    found = read_labels(job.out) if form == 'png' else from_masks(job.out)
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in found)
    areas = pd.read_parquet(job.out / 'areas.parquet')
    counted = areas.pivot_table('pixels', 'image', 'class', fill_value=0)
    for name, truth in expected.items():
        pixels = np.bincount(truth.ravel(), minlength=len(MODEL['classes']))
        assert [counted.loc[name].get(kind, 0) for kind in MODEL['classes']] == pixels.tolist()
    mean = areas[areas['class'] == MODEL['classes'][0]].share.sum() / len(expected)
    assert manifest['share'][0] == pytest.approx(mean)


def from_masks(out: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for path in sorted(out.glob('shards/*/masks.parquet')):
        for row in pd.read_parquet(path).to_dict('records'):
            labels = found.setdefault(row['image'], np.full((row['height'], row['width']), 255, np.uint8))
            labels[mask_of(row)] = row['label']
    return found


def test_folder_of_another_job_is_refused(few: dict[str, bytes], bank: Path, tmp_path: Path) -> None:
    parts = list_parts([write_files(tmp_path / 'source', dict(list(few.items())[:2]))])
    job = BulkJob(tmp_path / 'out', MODEL, 1, bank=bank)
    execute_all(SegmentShard, job, parts)
    segment(job, parts, HERE)
    with pytest.raises(TPAError, match='has shards of another job: its model was'):
        segment(replace(job, model={**MODEL, 'alpha': 0.1}), parts, HERE)
    with pytest.raises(TPAError, match='has shards of another job: its shards was 1, not 2'):
        segment(replace(job, shards=2), parts, HERE)
    with pytest.raises(TPAError, match='its source was 2 files with digest .*, not 1 files'):
        segment(job, parts[:1], HERE)


def test_shard_without_one_of_its_files_is_not_done(few: dict[str, bytes], bank: Path, tmp_path: Path) -> None:
    parts = list_parts([write_files(tmp_path / 'source', dict(list(few.items())[:2]))])
    (shard,) = execute_all(SegmentShard, BulkJob(tmp_path / 'out', MODEL, 1, bank=bank), parts)
    (shard.folder.path / 'labels.tar').unlink()
    assert shard.state() is not State.DONE
    execute(shard)
    assert shard.state() is State.DONE and len(read_labels(tmp_path / 'out')) == 2


def test_host_that_adapts_from_image_to_image_is_refused(few: dict[str, bytes], tmp_path: Path) -> None:
    parts = list_parts([write_files(tmp_path / 'source', dict(list(few.items())[:1]))])
    model = {'host': str(config_path('naclip-tent-stream_mini-b8'))}
    shard = SegmentShard(BulkJob(tmp_path / 'out', model, 1), 0, tuple(parts))
    execute(shard)
    assert 'adapts from image to image' in shard.look()[1]


def test_source_that_is_damaged_as_a_whole_is_an_error(bank: Path, tmp_path: Path) -> None:
    parts = list_parts([write_files(tmp_path / 'source', {'a.png': b'', 'b.tar': b'x' * 600})])
    job = BulkJob(tmp_path / 'out', MODEL, 2, bank=bank)
    execute_all(SegmentShard, job, parts)
    with pytest.raises(TPAError, match='None of the images could be read'):
        segment(job, parts, HERE)


def test_dry_run_shows_bank_and_labels_and_writes_nothing(
    few: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_files(tmp_path / 'source', few)
    common = ['--classes', *MODEL['classes'], '--backbone', 'mini-b8', '--out', tmp_path / 'out', '--shards', 4]
    run_in_process('segment', tmp_path / 'source', *common, '--pool-size', 20, '--dry-run')
    out = capsys.readouterr().out
    assert '0 of 1 shards are done; 1 to run with 20 images.' in out
    assert '0 of 4 shards are done; 4 to run with 30 images.' in out
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('tool', 'args', 'says'),
    (
        ('segment', ['x', '--out', 'y', '--launcher', 'slurm'], '--launcher slurm needs --shards'),
        ('segment', ['x', '--out', 'y', '--shards', '2', '--save-bank', 'z'], 'the bank is in the output folder'),
        ('segment', ['x', '--out', 'y', '--shards', '2', '--consistent'], '--consistent cannot be used with --shards'),
        ('build_bank', ['x', '--out', 'y', '--launcher', 'ray'], '--launcher ray needs --shards'),
        ('build_bank', ['x', '--out', 'y', '--launcher', 'mpi', '--shards', '2'], 'mpi cannot be used with --shards'),
        ('build_bank', ['x', '--out', 'y', '--shards', '2'], '--shards needs --pool'),
    ),
)
def test_options_that_do_not_fit_are_named(
    tool: str, args: list[str], says: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit):
        run_in_process(tool, *args)
    assert says in capsys.readouterr().err
