# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of adasum.torch share: a small network, each rank's batch and gradients, and what they have to become."""

import torch
import torch.distributed

import adasum.torch


def world():
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def network(seed=1, width=20):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(10, width), torch.nn.ReLU(), torch.nn.Linear(width, 3))


def batch_of(rank, step=0):
    torch.manual_seed(100 * rank + step + 7)
    return torch.randn(4, 10), torch.randn(4, 3)


def gradients_of(rank, step=0, make=network):
    """Of one process, without any communication."""
    model = make()
    x, y = batch_of(rank, step)
    torch.nn.functional.mse_loss(model(x), y).backward()
    return [parameter.grad for parameter in model.parameters()]


def backward(ddp, step=0):
    x, y = batch_of(world()[0], step)
    ddp.zero_grad()
    torch.nn.functional.mse_loss(ddp(x), y).backward()
    return [parameter.grad.clone() for parameter in ddp.parameters()]


def combined(of_ranks, rule="adasum", per_layer=True):
    """What the rule makes of the gradients of all ranks, by the calls on one process."""
    if per_layer:
        return [adasum.combine([g[k].contiguous() for g in of_ranks], torch.empty_like(of_ranks[0][k]), rule=rule)[0]
                for k in range(len(of_ranks[0]))]
    whole = [torch.cat([one.reshape(-1) for one in g]) for g in of_ranks]
    result = adasum.combine(whole, torch.empty_like(whole[0]), rule=rule)[0]
    return [part.view_as(one) for part, one in zip(result.split([one.numel() for one in of_ranks[0]]), of_ranks[0])]


def require_close(found, expected):
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def require_same_bits(tensors):
    rank, size = world()
    whole = torch.cat([one.reshape(-1) for one in tensors])
    others = [torch.empty_like(whole) for _ in range(size)]
    torch.distributed.all_gather(others, whole)
    assert all((other == whole).all() for other in others)
