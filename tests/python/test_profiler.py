# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions in PyTorch's profiler: processes.py N python3 -m pytest test_profiler.py"""

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
from ranks import backward, network

pytestmark = pytest.mark.usefixtures("process_group")


def profile():
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])


def ranges_of(profiled):
    return [event for event in profiled.events() if event.name.startswith("adasum:")]


def test_reductions_and_their_steps():
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.0002)
    state = adasum.torch.State()
    ddp.register_comm_hook(state, adasum.torch.hook)
    for step in range(3):  # buckets are cut otherwise after the first one
        backward(ddp, step)
    with profile() as profiled:
        backward(ddp)
    found = ranges_of(profiled)
    whole = [event for event in found if event.name == "adasum:reduce"]
    assert len(whole) == len(state.reports()) > 1
    backward_pass = [event for event in profiled.events() if event.name.startswith("autograd::")]
    assert {event.thread for event in whole}.isdisjoint(event.thread for event in backward_pass)
    for name in ("adasum:begin", "adasum:measure", "adasum:combine", "adasum:finish"):
        steps = [event for event in found if event.name == name]
        assert len(steps) >= len(whole), (name, {event.name for event in found})
        for one in steps:
            assert any(of.time_range.start <= one.time_range.start and one.time_range.end <= of.time_range.end for of in whole)


def test_only_what_is_asked_for_meanwhile():
    state = adasum.torch.State()
    one = torch.ones(10)
    state.reduce(one).wait()
    with profile() as first:
        state.reduce(one).wait()
    state.reduce(one).wait()
    with profile() as without:
        torch.ones(10)
    assert [event.name for event in ranges_of(first)].count("adasum:reduce") == 1
    assert not ranges_of(without)


def test_of_a_reduction_that_fails():
    state = adasum.torch.State()
    with profile() as profiled:
        with pytest.raises(adasum.Error):
            state.reduce(torch.ones(10, dtype=torch.int32)).wait()
        state.reduce(torch.ones(10)).wait()
    assert [event.name for event in ranges_of(profiled)].count("adasum:reduce") == 2
