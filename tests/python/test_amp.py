# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mixed precision among processes, where one of them overflows: processes.py N python3 -m pytest test_amp.py"""

import pytest
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
from ranks import batch_of, combined, network, require_close, require_same_bits, world

pytestmark = [
    pytest.mark.usefixtures("process_group"),
    pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="this PyTorch has no GradScaler for the CPU")]
overflow_in, steps, rate = 3, 6, 0.01


def loss_of(model, rank, step):
    """In half precision. In one step, the gradients of the last process are too large for it."""
    x, y = batch_of(rank, step)
    if step == overflow_in and rank == world()[1] - 1:
        y = y + 1e6
    with torch.autocast("cpu", dtype=torch.float16):
        return torch.nn.functional.mse_loss(model(x), y)


def new_scaler(kind):
    return kind(device="cpu", init_scale=1024.0, growth_interval=2)


def copy_of(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def gradients_of(rank, step, parameters, scale):
    """Of one process, by a model with these parameters."""
    model = network()
    for own, parameter in zip(model.parameters(), parameters):
        own.data.copy_(parameter)
    (scale * loss_of(model, rank, step)).backward()
    return [parameter.grad / scale for parameter in model.parameters()]


@pytest.mark.parametrize("policy", ["propagate", "exclude"])
def test_overflow_on_one_rank(policy):
    """By default all skip the step, and lower the scale. With `exclude` the step is that of the others."""
    rank, size = world()
    model = network()
    ddp = DistributedDataParallel(model)
    state = adasum.torch.State(nonfinite=policy)
    ddp.register_comm_hook(state, adasum.torch.hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    scaler = new_scaler(torch.amp.GradScaler)
    scales = []
    for step in range(steps):
        before, scale = copy_of(model), scaler.get_scale()
        optimizer.zero_grad()
        scaler.scale(loss_of(ddp, rank, step)).backward()
        scaler.step(optimizer)
        scaler.update()

        scales.append(scaler.get_scale())
        require_same_bits([*copy_of(model), torch.tensor([scales[-1]])])
        excluded = [size - 1] if policy == "exclude" and step == overflow_in else []
        assert state.reports()[0]["excluded"] == excluded
        takes_part = [r for r in range(size) if r not in excluded]
        if (step == overflow_in and policy == "propagate") or not takes_part:
            expected = before
        else:
            sums = combined([gradients_of(r, step, before, scale) for r in takes_part])
            expected = [parameter - rate * gradient for parameter, gradient in zip(before, sums)]
        require_close(copy_of(model), expected)
    assert scales == ([1024, 2048, 2048, 1024, 1024, 2048] if policy == "propagate" else [1024, 2048, 2048, 4096, 4096, 8192])


@pytest.mark.parametrize("fused", [False, True])  # which would take the scale itself, and skip the step
def test_delta_optimizer(fused):
    """Gradients are each process's own, and so is what GradScaler finds in them. ShardedGradScaler asks the others."""
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    rank, size = world()
    model = network()
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD(model.parameters(), lr=rate, fused=fused))
    scaler = new_scaler(ShardedGradScaler)
    for step in range(steps):
        before, scale = copy_of(model), scaler.get_scale()
        optimizer.zero_grad()
        scaler.scale(loss_of(model, rank, step)).backward()
        scaler.step(optimizer)
        scaler.update()
        after = copy_of(model)
        require_same_bits([*after, torch.tensor([scaler.get_scale()])])
        assert all(map(torch.equal, before, after)) == (step == overflow_in)
        if step != overflow_in:
            sums = combined([gradients_of(r, step, before, scale) for r in range(size)])  # SGD's steps are gradients
            require_close(after, [parameter - rate * gradient for parameter, gradient in zip(before, sums)])
    assert optimizer.reports()[0]["contributions"] == size
