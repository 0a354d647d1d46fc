# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adaptive summation of gradients (Maleki et al., MLSys 2021), and the other rules that combine gradients of several workers::

    out = adasum.pair(a, b)                        # two gradients
    out, report = adasum.tree([a, b, c])           # any number
    out, report = adasum.combine([a, b, c], rule="geometric_median")
    report = adasum.allreduce(a, MPI.COMM_WORLD)   # of all ranks, in place
    ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)   # import adasum.torch
"""

from ._config import show_config
from ._errors import (AgreementError, BadInput, CommunicationError, Error, MPIError, NonfiniteError, SharedMemoryError,
                      TimeoutError)
from ._library import version as _version
from .local import combine, pair, rules, tree
from .mpi import Plan, allreduce, set_timeout
from .report import Report

__version__ = _version()
__all__ = ["AgreementError", "BadInput", "CommunicationError", "Error", "MPIError", "NonfiniteError", "Plan", "Report",
           "SharedMemoryError", "TimeoutError", "allreduce", "combine", "pair", "rules", "set_timeout", "show_config", "tree"]
