# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adaptive summation for PyTorch, in place of averaging::

    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)

or, where an optimizer's steps are to be combined in place of gradients (Adam, momentum), without DistributedDataParallel::

    optimizer = adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters()))

or, for replicas whose parameters fully_shard has split over several processes each (FSDP2)::

    adasum.torch.apply_to_fsdp(model, mesh)
"""

from .delta import DeltaOptimizer
from .fsdp import apply_to_fsdp
from .hooks import State, hook

__all__ = ["DeltaOptimizer", "State", "apply_to_fsdp", "hook"]
