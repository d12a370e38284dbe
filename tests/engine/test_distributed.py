"""One rank and many ranks give the same bank and the same numbers; nothing half-written survives a kill."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest
import torch

from tests.helpers.world import ROOT, environment, make_world, results, run_in_process, run_ranks
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.engine.distributed import _first_slurm_node, gpu_of_rank, init_distributed
from tpa_mmseg.errors import TPAError


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('world')
    make_world(folder)
    run_in_process('test', folder / 'config.py', '--work-dir', folder / 'ranks1')
    return folder


@pytest.mark.parametrize('ranks', [2, 3])
def test_several_ranks_give_the_same_bank_and_numbers(world, ranks):
    """7 test images and 5 pool images divide by neither 2 nor 3."""
    work_dir = world / f'ranks{ranks}'
    done = run_ranks(ranks, 'test', world / 'config.py', '--work-dir', work_dir)
    assert done.returncode == 0, done.stderr[-2000:]
    assert_like_one_rank(world, work_dir)


def test_two_ranks_by_slurm_give_the_same_bank_and_numbers(world, one_node_slurm):
    command = [ROOT / 'tools/slurm_test.sh', 'test', 'two-ranks', world / 'config.py', '--work-dir', world / 'slurm']
    ranks = {'GPUS': '2', 'CPUS_PER_TASK': '1', 'PYTHON': sys.executable}
    # The host name may stand for an address of another interface.
    loopback = {'MASTER_ADDR': '127.0.0.1', 'GLOO_SOCKET_IFNAME': 'lo'}
    done = subprocess.run(
        command, env={**environment(), **ranks, **loopback}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert_like_one_rank(world, world / 'slurm')


def assert_like_one_rank(world, work_dir):
    one, many = (PrototypeBank.load(folder / 'bank.safetensors') for folder in (world / 'ranks1', work_dir))
    assert torch.equal(one.counts, many.counts)
    assert one.images == many.images and one.pool == many.pool and one.fingerprint == many.fingerprint
    torch.testing.assert_close(many.sums, one.sums, rtol=1e-6, atol=1e-6)
    assert many.diagnosis.points == one.diagnosis.points > 0
    for name in ('kappa_0', 'kappa_inf', 'rho', 'unit', 'beta2'):
        assert getattr(many.diagnosis, name) == pytest.approx(getattr(one.diagnosis, name), abs=1e-9), name
    alone, together = results(world / 'ranks1'), results(work_dir)
    for part in ('host', 'tpa', 'gain', 'per_class'):
        assert alone[part] == together[part]


def test_more_ranks_than_pool_images(world):
    out = world / 'tiny.safetensors'
    done = run_ranks(3, 'build_bank', world / 'config.py', '--out', out, '--pool-size', 2, '--work-dir', world / 'tiny')
    assert done.returncode == 0, done.stderr[-2000:]
    assert PrototypeBank.load(out).images == 2


def test_an_image_that_one_rank_cannot_read_stops_all(tmp_path):
    make_world(tmp_path)
    (tmp_path / 'scenes' / 'images' / '0001.png').write_bytes(b'broken')
    options = ('--cfg-options', 'custom_hooks.0.pool.size=7')
    done = run_ranks(2, 'test', tmp_path / 'config.py', '--work-dir', tmp_path / 'w', *options)
    assert done.returncode != 0
    assert '0001.png (not one of the formats' in done.stderr
    assert not (tmp_path / 'w' / 'bank.safetensors').exists()


def test_a_kill_while_the_bank_is_built_or_saved_leaves_no_half_bank(world, tmp_path):
    """Kills the run at different moments; whatever lies there afterward is the whole bank or none."""
    expected = PrototypeBank.load(world / 'ranks1' / 'bank.safetensors')
    work_dir = tmp_path / 'work'
    command = [sys.executable, ROOT / 'tools/test.py', world / 'config.py', '--work-dir', work_dir]
    for moment in ('Building the bank', 'Bank of'):
        process = subprocess.Popen(
            [str(part) for part in command], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        seen = b''
        deadline = time.time() + 120
        while moment.encode() not in seen and time.time() < deadline:
            seen += os.read(process.stdout.fileno(), 4096)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert moment.encode() in seen
        assert not (work_dir / 'results.json').exists()
        if (work_dir / 'bank.safetensors').exists():
            torch.testing.assert_close(PrototypeBank.load(work_dir / 'bank.safetensors').sums, expected.sums)
    run_in_process('test', world / 'config.py', '--work-dir', work_dir)
    torch.testing.assert_close(PrototypeBank.load(work_dir / 'bank.safetensors').sums, expected.sums)
    assert results(work_dir)['tpa'] == results(world / 'ranks1')['tpa']


def test_a_full_disk_ends_in_a_sentence_and_leaves_nothing(world, tmp_path):
    def small_files_only():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    script = (
        'import sys; from tpa_mmseg.core import PrototypeBank; from tpa_tools.command import run_tool; '
        'run_tool(PrototypeBank(100, 768).save, sys.argv[1])'
    )
    path = tmp_path / 'bank.safetensors'
    command = [sys.executable, '-c', script, str(path)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, preexec_fn=small_files_only, cwd=ROOT
    )
    assert done.returncode == 2
    assert f'error: No space left while writing {path}' in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_launcher_without_its_variables_is_refused(monkeypatch):
    monkeypatch.delenv('SLURM_PROCID', raising=False)
    with pytest.raises(TPAError, match='--launcher slurm needs the variable SLURM_PROCID'):
        init_distributed('slurm')


@pytest.mark.parametrize(
    'nodes, first', [('gpu7', 'gpu7'), ('gpu[03-05,9]', 'gpu03'), ('a1,b2', 'a1'), ('rack2-n[1,4]', 'rack2-n1')]
)
def test_the_first_node_of_a_slurm_list(monkeypatch, nodes, first):
    monkeypatch.delenv('SLURM_STEP_NODELIST', raising=False)
    monkeypatch.setenv('SLURM_NODELIST', nodes)
    assert _first_slurm_node() == first


def test_ranks_of_one_machine_listen_on_loopback_only():
    """PyTorch's own store listens on every interface."""
    script = """
import os, sys, torch, torch.distributed as dist
from tpa_mmseg.engine.distributed import init_distributed
init_distributed('slurm')
dist.all_reduce(torch.ones(1))
mine = {os.readlink(file.path) for file in os.scandir('/proc/self/fd') if os.path.islink(file.path)}
for table in ('tcp', 'tcp6'):
    for state in map(str.split, open(f'/proc/self/net/{table}')):
        if state[3] == '0A' and f'socket:[{state[9]}]' in mine:
            print(state[1].partition(':')[0])
dist.barrier()
"""
    job = {'SLURM_NTASKS': '2', 'SLURM_NNODES': '1', 'SLURM_JOB_ID': str(os.getpid())}
    ranks = [
        subprocess.Popen(
            [sys.executable, '-c', script],
            env={**environment(), **job, 'SLURM_PROCID': str(rank), 'SLURM_LOCALID': str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    listening = [rank.communicate(timeout=120)[0].split() for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert listening[0] and {*listening[0], *listening[1]} == {'0100007F'}


@pytest.mark.parametrize(
    ('rank', 'gpus', 'launcher', 'gpu'),
    [(0, 1, 'pytorch', 0), (3, 8, 'pytorch', 3), (3, 4, 'slurm', 3), (3, 1, 'slurm', 0)],
)
def test_every_rank_has_a_gpu_of_its_own(rank, gpus, launcher, gpu):
    assert gpu_of_rank(rank, gpus, launcher) == gpu


@pytest.mark.parametrize(('gpus', 'launcher'), [(1, 'pytorch'), (2, 'slurm')])
def test_more_ranks_than_gpus_are_refused(gpus, launcher):
    with pytest.raises(TPAError, match=f'Rank 2 of this machine has no GPU: {gpus} are visible'):
        gpu_of_rank(2, gpus, launcher)
