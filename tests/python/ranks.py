# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of adasum.torch share: a small network, each rank's batch and gradients, and what they have to become."""

import pytest
import torch
import torch.distributed

import adasum.torch
from adasum.torch.hooks import host_group_of


def device():
    """The type of that on which tensors are made."""
    return torch.empty(0).device.type


def world():
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def is_odd_one():
    """Whether this is the rank on which something is otherwise."""
    rank, size = world()
    return rank == size - 1


def network(seed=1, width=20):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(10, width), torch.nn.ReLU(), torch.nn.Linear(width, 3))


def batch_of(rank, step=0):
    torch.manual_seed(100 * rank + step + 7)
    return torch.randn(4, 10), torch.randn(4, 3)


def loss_of(model, batch):
    x, y = batch
    return torch.nn.functional.mse_loss(model(x), y)


def gradients_of(rank, step=0, make=network, loss_of=loss_of):
    """Of one process, without any communication."""
    model = make()
    loss_of(model, batch_of(rank, step)).backward()
    return [parameter.grad for parameter in model.parameters()]


def backward(ddp, step=0):
    x, y = batch_of(world()[0], step)
    ddp.zero_grad()
    torch.nn.functional.mse_loss(ddp(x), y).backward()
    return [parameter.grad.clone() for parameter in ddp.parameters()]


def combined(of_ranks, rule="adasum", per_layer=True):
    """What the rule makes of the gradients of all ranks, by the calls on one process, which take tensors of the CPU."""
    if of_ranks[0][0].device.type != "cpu":
        found = combined([[one.cpu() for one in g] for g in of_ranks], rule, per_layer)
        return [one.to(of_ranks[0][0].device) for one in found]
    if per_layer:
        return [adasum.combine([g[k].contiguous() for g in of_ranks], torch.empty_like(of_ranks[0][k]), rule=rule)[0]
                for k in range(len(of_ranks[0]))]
    whole = [torch.cat([one.reshape(-1) for one in g]) for g in of_ranks]
    result = adasum.combine(whole, torch.empty_like(whole[0]), rule=rule)[0]
    return [part.view_as(one) for part, one in zip(result.split([one.numel() for one in of_ranks[0]]), of_ranks[0])]


def require_close(found, expected, atol=1e-5):
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=atol)


def require_same_bits(tensors, group=None):
    whole = torch.cat([one.reshape(-1) for one in tensors]).cpu()
    others = [torch.empty_like(whole) for _ in range(torch.distributed.get_world_size(group))]
    torch.distributed.all_gather(others, whole, group=host_group_of(group))
    assert all((other == whole).all() for other in others)


def train_alone(batches, rule="adasum", model=None, loss_of=loss_of, before=list, after=list):
    """The parameters that steps of SGD with combined gradients lead to, computed without any communication.

    Args:
        batches: Of each rank, one for each step.
        before: What is done to the gradients of each rank before they are combined.
        after: What is done to the combined gradients.
    """
    model = model or network()
    parameters = list(model.parameters())
    for of_ranks in zip(*batches):
        gradients = []
        for batch in of_ranks:
            model.zero_grad()
            loss_of(model, batch).backward()
            gradients.append(before([parameter.grad.clone() for parameter in parameters]))
        with torch.no_grad():
            for parameter, gradient in zip(parameters, after(combined(gradients, rule))):
                parameter -= 0.1 * gradient
    return [parameter.detach() for parameter in parameters]


def require_trained(found, batches, make=network, atol=1e-5, **how):
    """That parameters are the same on all ranks, and what train_alone makes of a new model by the rule adasum, but not what
    averages would make of it."""
    found = [parameter.detach() for parameter in found]
    require_same_bits(found)
    require_close(found, train_alone(batches, model=make(), **how), atol)
    if world()[1] > 1:
        with pytest.raises(AssertionError):
            require_close(found, train_alone(batches, "mean", model=make(), **how), atol)
