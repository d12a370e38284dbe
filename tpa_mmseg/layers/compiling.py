"""Blocks of networks by torch.compile, where it works."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor, nn

RunBlock = Callable[[nn.Module, Tensor], Tensor]


@lru_cache(maxsize=8)
def compiled(run_block: RunBlock) -> RunBlock:
    """Returns a function that runs a block by torch.compile; where that fails, as it is, after one warning.

    The blocks of a network share one compiled program, and so do grids of all sizes: compiling takes seconds, not
    minutes. If gradients are enabled, nothing is compiled.

    Args:
        run_block: (block, (B, T, D) tokens) -> (B, T, D) tokens. It must not change its input.
    """
    program = torch.compile(run_block, dynamic=True)
    failed = False

    def run(block: nn.Module, tokens: Tensor) -> Tensor:
        nonlocal failed
        if failed or torch.is_grad_enabled():
            return run_block(block, tokens)
        try:
            return program(block, tokens)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:  # a compiler and its tools can fail in any way
            failed = True
            reason = str(error).strip().partition('\n')[0]
            warnings.warn(
                f'compile=True has no effect: torch.compile failed ({type(error).__name__}: {reason}).', stacklevel=2
            )
            return run_block(block, tokens)

    return run
