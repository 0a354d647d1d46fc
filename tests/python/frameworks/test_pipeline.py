# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FSDP2 in the stages of a pipeline: processes.py 8 python3 -m pytest test_pipeline.py"""

import pytest
import torch

from pages import run_example
from ranks import batch_of, network, require_same_bits, train_alone, world

pytestmark = pytest.mark.usefixtures("process_group")


def test_pipeline():
    """Two stages, each in two replicas of two shards."""
    batches = [[batch_of(part, step) for step in range(3)] for part in range(4)]
    whole = network(width=16)
    names = run_example("docs/pytorch_frameworks.md", "FSDP2 with pipelines", torch=torch, stages=[whole[:2], whole[2:]],
                        loss=torch.nn.functional.mse_loss, batches=batches[world()[0] % 4])
    found = [parameter.detach().full_tensor() for parameter in names["layers"].parameters()]
    require_same_bits(found, names["mesh"]["replicate"].get_group())

    def loss_of(model, shards):
        return sum(torch.nn.functional.mse_loss(model(x), y) for x, y in shards) / 2

    replicas = [list(zip(*batches[:2])), list(zip(*batches[2:]))]
    expected, average = (train_alone(replicas, rule, model=network(width=16), loss_of=loss_of) for rule in ("adasum", "mean"))
    own = slice(0, 2) if names["number"] == 0 else slice(2, 4)
    start = [parameter.detach() for parameter in network(width=16).parameters()]
    for one, right, wrong, first in zip(found, expected[own], average[own], start[own]):
        # bfloat16 has 8 bits: rounding changes each factor by 2^-9 of it at most, and there are about ten from the parameters
        # to their gradients.
        tolerance = 10 * 2 ** -9 * float((right - first).abs().max())
        torch.testing.assert_close(one, right, rtol=0, atol=tolerance)
        assert float((one - wrong).abs().max()) > 4 * tolerance
