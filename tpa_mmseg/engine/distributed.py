"""Starting several ranks, on GPUs with nccl and on CPUs with gloo."""

from __future__ import annotations

import os
import re
import socket
import zlib

import torch
import torch.distributed as dist
from mmengine.model import is_model_wrapper
from mmengine.registry import MODEL_WRAPPERS
from torch import nn

from ..errors import TPAError

# The store of rank 0 lives as long as the process.
_store: dist.TCPStore | None = None

LAUNCHERS = ('none', 'pytorch', 'slurm', 'mpi')
# Where each launcher tells a process its rank, the number of ranks, and its place on its machine.
_VARIABLES = {
    'pytorch': ('RANK', 'WORLD_SIZE', 'LOCAL_RANK'),
    'slurm': ('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID'),
    'mpi': ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_RANK'),
}


def unwrap(model: nn.Module) -> nn.Module:
    """The model itself, without what distributes it."""
    return model.module if is_model_wrapper(model) else model


def init_distributed(launcher: str) -> None:
    """Joins the group of ranks that a launcher started. Must run before the Runner is built.

    mmengine's own start-up needs GPUs, and on Slurm as many as ranks in sight of each; the Runner finds this group and
    leaves it alone.
    """
    if launcher == 'none' or dist.is_initialized():
        return
    missing = [name for name in _VARIABLES[launcher][:2] if name not in os.environ]
    if missing:
        raise TPAError(
            f'--launcher {launcher} needs the variable {missing[0]}, which is not set: start with '
            'tools/dist_test.sh or tools/slurm_test.sh, or use --launcher none.'
        )
    os.environ.setdefault('MASTER_PORT', str(_port_of_job()))
    if _on_one_machine(launcher):
        _stay_on_loopback(launcher)
    for name, source in zip(_VARIABLES['pytorch'], _VARIABLES[launcher], strict=True):
        os.environ[name] = os.environ.get(source, '0')
    os.environ.setdefault('MASTER_ADDR', _first_slurm_node() if launcher == 'slurm' else '127.0.0.1')
    on_gpus = torch.cuda.is_available()
    if on_gpus:
        torch.cuda.set_device(gpu_of_rank(int(os.environ['LOCAL_RANK']), torch.cuda.device_count(), launcher))
    dist.init_process_group('nccl' if on_gpus else 'gloo')


def gpu_of_rank(local_rank: int, gpus: int, launcher: str) -> int:
    """Returns the number of the GPU that a rank computes on.

    Args:
        local_rank: Number of the rank on its machine.
        gpus: GPUs that the rank sees.
        launcher: One of :data:`LAUNCHERS`.
    """
    # Slurm and MPI may show every rank its own GPU alone.
    if gpus == 1 and launcher != 'pytorch':
        return 0
    if local_rank >= gpus:
        raise TPAError(
            f'Rank {local_rank} of this machine has no GPU: {gpus} are visible. Start at most {gpus} ranks, or make '
            'more of them visible (CUDA_VISIBLE_DEVICES).'
        )
    return local_rank


def _on_one_machine(launcher: str) -> bool:
    if launcher == 'slurm':
        return os.environ.get('SLURM_STEP_NUM_NODES', os.environ.get('SLURM_NNODES')) == '1'
    _, ranks, here = _VARIABLES[launcher]
    local = here.removesuffix('RANK') + ('WORLD_SIZE' if launcher == 'pytorch' else 'SIZE')
    return local in os.environ and os.environ[local] == os.environ[ranks]


def _stay_on_loopback(launcher: str) -> None:
    """Keeps the ranks of one machine from being reachable by others: the store of PyTorch has no authentication.

    PyTorch would listen on every interface. Here rank 0 listens on loopback, and PyTorch finds the store as if an agent
    had started it. torchrun has such an agent already, whose interface is not ours to choose.
    """
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith('lo')), None)
    if loopback is not None:
        for library in ('GLOO', 'NCCL'):
            os.environ.setdefault(f'{library}_SOCKET_IFNAME', loopback)
    if launcher == 'pytorch' or 'MASTER_ADDR' in os.environ:
        return
    os.environ['MASTER_ADDR'] = '127.0.0.1'
    os.environ['TORCHELASTIC_USE_AGENT_STORE'] = 'True'
    if os.environ[_VARIABLES[launcher][0]] == '0':
        global _store
        listener = socket.create_server(('127.0.0.1', int(os.environ['MASTER_PORT'])))
        # Of the caller: the store closes it.
        descriptor = listener.detach()
        _store = dist.TCPStore(
            *('127.0.0.1', int(os.environ['MASTER_PORT'])),
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=descriptor,
        )


def _port_of_job() -> int:
    """Returns a port that all ranks of a job agree on and other jobs on the same machine do not take."""
    names = ('SLURM_JOB_ID', 'SLURM_STEP_ID', 'PMIX_NAMESPACE', 'OMPI_MCA_ess_base_jobid')
    # Below the ports that systems give to outgoing connections.
    return 12000 + zlib.crc32('.'.join(os.environ.get(name, '') for name in names).encode()) % 20000


def _first_slurm_node() -> str:
    """The first machine of a list such as ``node[03-05,9],other``."""
    nodes = os.environ.get('SLURM_STEP_NODELIST') or os.environ.get('SLURM_NODELIST', '127.0.0.1')
    match = re.match(r'([^,\[]+)(?:\[(\w+))?', nodes)
    return ''.join(part for part in match.groups() if part)


# In mmengine's own registry: the Runner looks a wrapper up there, without a scope.
@MODEL_WRAPPERS.register_module()
class TestOnlyWrapper(nn.Module):
    """Takes the place of DistributedDataParallel, which refuses a model without trainable parameters.

    Every rank holds the same frozen model, so there is nothing to synchronize.
    """

    __test__ = False  # not a pytest class

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def test_step(self, data: dict) -> list:
        return self.module.test_step(data)

    def val_step(self, data: dict) -> list:
        return self.module.val_step(data)
