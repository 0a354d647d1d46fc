# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of adasum.torch of which one process gives anything: each ends in a result or an exception of adasum's on all processes,
and the next right call is right. processes.py N python3 -m pytest test_random_tensors.py"""

import math

import numpy
import pytest
import torch
import torch.distributed

import adasum.torch

pytestmark = pytest.mark.usefixtures("process_group")
calls = 3000


class Arguments:
    """All processes draw the same; one of them, the culprit, gives what is wrong, in one call of two."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)

    def begin_call(self, place):
        """place: in the step, each of which has the same reductions."""
        rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.length, self.cut = ((5, [0, 2, 2]), (39, [10, 20, 30]), (5, [0, 2, 2]), (16, [1, 2, 3]))[place]
        self.dtype = (torch.float32, torch.bfloat16, torch.float32, torch.float64)[place]
        self.tensor_is_wrong = self.random.random() < 0.5
        self.is_wrong = self.random.random() < 0.5
        self.is_culprit = self.is_wrong and self.random.integers(size) == rank

    def one_of(self, *values):
        return values[self.random.integers(len(values))]

    def tensor(self):
        good = torch.ones(self.length, dtype=self.dtype)
        wrong = self.one_of(None, 3, "text", [1.0], numpy.ones(self.length), good.int(), good.bool(), good.char(),
                            torch.ones(1, dtype=self.dtype).expand(self.length), good.to("meta"), good.to_sparse(),
                            torch.ones(self.length, 2, dtype=self.dtype).t(), torch.ones(1).expand(self.length + 1),
                            torch.nn.Module(), torch.Tensor)
        return wrong if self.is_culprit and self.tensor_is_wrong else good

    def segments(self):
        right = [int(n) for n in numpy.diff([0, *self.cut, self.length])]
        wrong = self.one_of([self.length, 1], [-1, self.length + 1], [1 << 70], "ab", [0.5], [None], 7, [True] * self.length,
                            [math.nan], object(), {"a": 1}, [[1]])
        return wrong if self.is_culprit and not self.tensor_is_wrong else right

    def of_state(self):
        right = self.one_of({}, {"rule": "mean"}, {"nonfinite": "exclude"}, {"per_layer": False}, {"check_agreement": True})
        wrong = self.one_of({"rule": None}, {"rule": "nonsense"}, {"rule": "mean\0"}, {"rule": "\ud800"}, {"rule": b"mean"},
                            {"report_every": -1}, {"report_every": 1}, {"report_every": 0.5, "on_report": print},
                            {"on_report": 3}, {"shard": 3}, {"shard": (1 << 40, 0)}, {"shard": (0, -1)}, {"shard": "ab"},
                            {"colour": "red"}, {"wire": "x" * 5000}, {"timeout": -1}, {"nonfinite": 7})
        return wrong if self.is_culprit else right


def ends_alike(given, call):
    """Whether the call gave a result, on all processes or on none."""
    try:
        call()
        worked = True
    except (adasum.Error, ZeroDivisionError):
        worked = False
    workers = torch.tensor([int(worked)])
    torch.distributed.all_reduce(workers)
    assert workers.item() in (0, torch.distributed.get_world_size())
    assert worked or given.is_wrong
    return worked


def test_random_tensors():
    given = Arguments(7)
    state, results, reductions = adasum.torch.State(), 0, 0
    for _ in range(calls):
        given.begin_call(reductions % 4)
        kind = given.random.integers(8)
        if kind == 0:
            asked = given.of_state()
            results += ends_alike(given, lambda: adasum.torch.State(**asked))
        elif kind == 1:
            weights = [torch.nn.Parameter(torch.ones(given.length, dtype=given.dtype))]
            optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD(weights, lr=1.0))
            weights[0].grad = torch.ones_like(weights[0])
            if given.is_culprit:
                optimizer.optimizer.step = lambda closure=None: 1 / 0
            worked = ends_alike(given, optimizer.step)
            results += worked
            assert (weights[0] == (0 if worked else 1)).all()
        else:
            if reductions % 4 == 0:
                state.begin_step()
            reductions += 1
            tensor, segments = given.tensor(), given.segments()
            results += ends_alike(given, lambda: state.reduce(tensor, segments).wait())
    assert calls / 4 < results < calls * 3 / 4
    state.begin_step()
    assert (state.reduce(torch.ones(7)).wait() == 1).all()
