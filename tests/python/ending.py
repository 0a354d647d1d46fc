# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that ends while one of its reductions waits for another process: it ends as it would without. Needs two processes."""

import builtins
import sys

import torch
import torch.distributed

import adasum.torch

torch.distributed.init_process_group("gloo")
state = adasum.torch.State()
state.reduce(torch.ones(10)).wait()
if torch.distributed.get_rank() == 0:
    future = state.reduce(torch.ones(10))
    future.then(lambda done: print("the interpreter was used after its end"))
    if sys.argv[1] == "kept":
        builtins.kept = (state, future)  # destroyed at the very end, or never
    elif sys.argv[1] == "raised":
        print("raises", flush=True)
        raise KeyError("of the program itself")
