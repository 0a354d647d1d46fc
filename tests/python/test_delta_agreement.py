# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all processes find out about adasum.torch.DeltaOptimizer where one of them does something else; none waits for ever.
processes.py N python3 -m pytest test_delta_agreement.py"""

import pytest
import torch

import adasum.torch
from ranks import batch_of, network, require_same_bits, world

pytestmark = pytest.mark.usefixtures("process_group")


def last():
    return world()[0] == world()[1] - 1


def ones(*shape, value=1.0, **options):
    return torch.nn.Parameter(torch.full(shape, value, **options))


several = pytest.mark.skipif("int(__import__('os').environ['WORLD_SIZE']) == 1", reason="one process agrees with itself")
