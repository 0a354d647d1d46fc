# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the package adasum.torch offers, each of it run among processes that talk by gloo; with what it prints, see compare.py."""

import torch
import torch.distributed

import adasum.torch

length, segments = 60, [20, 40]


def found(feature, right):
    """Prints a line of what was found, on rank 0."""
    everywhere = torch.tensor(float(right))
    torch.distributed.all_reduce(everywhere, op=torch.distributed.ReduceOp.MIN)
    assert everywhere == 1, feature
    if torch.distributed.get_rank() == 0:
        print(f"  {feature}: right", flush=True)


def gradient_of(one, dtype=torch.float32):
    """Gradients that are orthogonal, so that Adasum adds them: ones at every size-th place."""
    gradient = torch.zeros(length, dtype=dtype)
    gradient[one::torch.distributed.get_world_size()] = 1
    return gradient


def reduced(state, dtype=torch.float32, inf=False):
    mine = gradient_of(torch.distributed.get_rank(), dtype)
    if inf and torch.distributed.get_rank() == 1:
        mine[0] = torch.inf
    state.begin_step()
    state.reduce(mine, segments).wait()
    return mine


def raises(call, words):
    try:
        call()
    except (adasum.Error, RuntimeError) as problem:
        return words in str(problem)
    return False


def stepped(wrap):
    """Whether the steps of two processes, along different axes, are added."""
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    weights = torch.nn.Parameter(torch.zeros(size))
    optimizer = wrap(torch.optim.SGD([weights], lr=1.0))
    weights.grad = torch.nn.functional.one_hot(torch.tensor(rank), size).float()
    optimizer.step()
    return (weights == -1).all()


def main():
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    if rank == 0:
        print("[languages]\nPyTorch")
    one, other = torch.tensor([1.0, 0, 1, 0]), torch.tensor([0.0, 1, 0, 1])
    found("two gradients of one process", (torch.as_tensor(adasum.pair(one, other)) == 1).all())
    found("any number of gradients of one process",
          (torch.as_tensor(adasum.combine([one, one, other], rule="sum")[0]) == torch.tensor([2.0, 1, 2, 1])).all())
    state = adasum.torch.State()
    found("allreduce", (reduced(state) == 1).all())
    found("segments", (reduced(state) == 1).all())

    model = torch.nn.Linear(4, 2, bias=False)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
    ddp(torch.nn.functional.one_hot(torch.tensor([rank]), 4).float()).sum().backward()
    found("beside other work", (model.weight.grad[:, :size] == 1).all())  # a column of each process, which are orthogonal
    found("buckets", (model.weight.grad[:, size:] == 0).all())
    found("steps of an optimizer", stepped(adasum.torch.DeltaOptimizer))

    right = True
    for name in adasum.rules():
        rule = name + ":byzantine=1,rule=mean" if name == "nearest_neighbour_mixing" else name
        expected = torch.as_tensor(adasum.combine([gradient_of(i) for i in range(size)], rule=rule, segments=segments)[0])
        right = right and (reduced(adasum.torch.State(rule=rule)) - expected).abs().max() <= 1e-5
    found("every rule of the library", right and len(adasum.rules()) >= 22)

    for name, dtype in [("float", torch.float32), ("double", torch.float64), ("binary16", torch.float16),
                        ("bfloat16", torch.bfloat16)]:
        found(name, (reduced(state, dtype) == 1).all())

    if size == 2:
        halves = adasum.torch.State(shard=(0, rank))  # of one replica, in two parts
        mine = torch.full((3 + rank,), 5.0)
        halves.reduce(mine).wait()
        found("shards", (mine == 5).all())

    checking = adasum.torch.State(check_agreement=True)
    found("check_agreement", raises(lambda: checking.reduce(torch.zeros(length - (rank == 0))).wait(), "disagree on the length"))
    found("nonfinite", (reduced(adasum.torch.State(rule="sum", nonfinite="exclude"), inf=True)[1] == float(size == 1)).all())
    quiet = adasum.torch.State(rule="sum", measure="when_needed")
    found("measure", (reduced(quiet) == 1).all() and quiet.reports()[0]["norms"][0] == [None] * size)
    found("wire", (reduced(adasum.torch.State(wire="bfloat16")) == 1).all())
    found("timeout", (reduced(adasum.torch.State(timeout=100)) == 1).all())
    found("a report", state.reports()[0]["contributions"] == size)


if __name__ == "__main__":
    main()
