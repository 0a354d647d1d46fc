# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions in PyTorch's profiler: processes.py N python3 -m pytest test_profiler.py"""

import threading

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
from ranks import backward, network, world

pytestmark = pytest.mark.usefixtures("process_group")


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setenv("ADASUM_TORCH_PROFILER", "1")


def profile():
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])


def ranges_of(profiled, name=""):
    return [event for event in profiled.events() if event.name.startswith("adasum:" + name)]


def microseconds(ranges):
    return sum(one.time_range.elapsed_us() for one in ranges)


def test_reductions_of_a_backward_pass(asked):
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.0002)
    state = adasum.torch.State()
    ddp.register_comm_hook(state, adasum.torch.hook)
    for step in range(3):  # buckets are cut otherwise after the first one
        backward(ddp, step)
    with profile() as profiled:
        backward(ddp)
    whole = ranges_of(profiled, "reduce")
    assert len(whole) == len(state.reports()) > 1
    backward_pass = [event for event in profiled.events() if event.name.startswith("autograd::")]
    assert backward_pass and {event.thread for event in whole}.isdisjoint(event.thread for event in backward_pass)


def is_within(event, whole):
    # Starts and lengths are in whole microseconds in older versions, each rounded down for itself.
    return whole.time_range.start <= event.time_range.start and event.time_range.end <= whole.time_range.end + 1


def test_steps(asked):
    state = adasum.torch.State()
    one = torch.ones(1 << 20)
    state.reduce(one).wait()
    shares = []
    for _ in range(5):
        with profile() as profiled:
            state.reduce(one).wait()
        whole, = ranges_of(profiled, "reduce")
        steps = [event for event in ranges_of(profiled) if event is not whole]
        assert {"adasum:begin", "adasum:measure", "adasum:combine", "adasum:finish"} <= {event.name for event in steps}
        assert all(is_within(event, whole) for event in steps)
        shares.append(microseconds(steps) / microseconds([whole]))
    if world()[1] > 1:  # on a busy machine, the thread may get no processor for a while between two steps
        assert max(shares) > 1 / 2


def test_only_what_the_thread_of_the_profile_asks_for(asked):
    state = adasum.torch.State()
    one = torch.ones(10)
    state.reduce(one).wait()
    with profile() as profiled:
        state.reduce(one).wait()
        other = threading.Thread(target=lambda: state.reduce(one).wait())
        other.start()
        other.join()
    state.reduce(one).wait()
    whole, = ranges_of(profiled, "reduce")
    # There are others with PyTorch's operators in place of compiled kernels.
    assert all(is_within(event, whole) for event in profiled.events() if event.thread == whole.thread)


def test_a_reduction_that_fails(asked):
    state = adasum.torch.State()
    with profile() as profiled:
        with pytest.raises(adasum.Error):
            state.reduce(torch.ones(10, dtype=torch.int32)).wait()
        state.reduce(torch.ones(10)).wait()
    assert len(ranges_of(profiled, "reduce")) == 2


def test_not_unasked(monkeypatch):
    monkeypatch.delenv("ADASUM_TORCH_PROFILER", raising=False)
    state = adasum.torch.State()
    with profile() as profiled:
        state.reduce(torch.ones(10)).wait()
    assert not ranges_of(profiled)
