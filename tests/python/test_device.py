# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adasum.torch with tensors of a device: processes.py N python3 -m pytest test_device.py --device=emulated (or cuda)"""

import pytest
import torch
import torch.distributed

import adasum.torch
from ranks import combined, is_odd_one, require_close, require_same_bits, world


@pytest.fixture(scope="module")
def device(pytestconfig, process_group):
    name = pytestconfig.getoption("device")
    if name == "cpu":
        pytest.skip("needs --device")
    return torch.device(name)


@pytest.fixture
def emulated(device):
    if device.type != "emulated":
        pytest.skip("needs --device=emulated")
    import emulated_device

    emulated_device.operators()
    return emulated_device


@pytest.fixture
def of_cpu(pytestconfig):
    """By which kernels tensors of the CPU are reduced."""
    return "pytorch" if pytestconfig.getoption("kernels") == "pytorch" else "compiled"


def of_all(lengths, seed=0):
    """Gradients of all processes, each as its segments."""
    gradients = []
    for rank in range(world()[1]):
        generator = torch.Generator("cpu").manual_seed(100 * rank + seed)
        gradients.append(list(torch.randn(sum(lengths), generator=generator, device="cpu").split(lengths)))
    return gradients


lengths = [5, 0, 1000, 128, 70000]


def check(state, device, seed=0):
    gradients = of_all(lengths, seed)
    mine = torch.cat(gradients[world()[0]]).to(device)
    require_close(state.reduce(mine, lengths).wait().cpu().split(lengths), combined(gradients))
    require_same_bits([mine])


@pytest.mark.parametrize("backend", ["of the device", "of both", "of the CPU"])
def test_process_groups(device, backend):
    own = {"emulated": "emulated_ccl", "cuda": "nccl"}[device.type]
    names = {"of the device": own, "of both": f"cpu:gloo,{device.type}:{own}", "of the CPU": "gloo"}
    group = torch.distributed.new_group(backend=names[backend])
    state, state_of_cpu = adasum.torch.State(group), adasum.torch.State(group)
    for seed in range(3):
        check(state, device, seed)
        check(state_of_cpu, torch.device("cpu"), seed)


def test_reports_say_by_which_kernels(device, of_cpu):
    state = adasum.torch.State()
    state.begin_step()
    for elements, where in enumerate((device, "cpu")):
        state.reduce(torch.ones(elements, device=where)).wait()
    assert state.reports()[1]["kernels"] == of_cpu
    if device.type == "emulated":
        assert state.reports()[0]["kernels"] == "pytorch"


@pytest.mark.parametrize("check_agreement", [False, True])
@pytest.mark.parametrize("odd, others", [("device", "cpu"), ("cpu", "device")])
def test_devices_that_differ(device, check_agreement, odd, others):
    """At a first reduction, and where the others have a plan for such tensors."""
    odd, others = (torch.device("cpu") if name == "cpu" else device for name in (odd, others))
    mine = torch.ones(10, device=odd if is_odd_one() else others)
    state = adasum.torch.State(check_agreement=check_agreement)
    if world()[1] > 1:
        with pytest.raises(adasum.Error, match="call.*a plan for" if check_agreement else "different"):
            state.reduce(mine).wait()
    for _ in range(3):  # the last type is not the one that is refused
        state.reduce(torch.ones(10, device=others)).wait()
        state.reduce(torch.ones(10, dtype=torch.float64, device=others)).wait()
    for _ in range(2):
        with pytest.raises(adasum.Error, match=f"on {others.type}.*, and now.* on {odd.type}" if is_odd_one() else "rank|call"):
            state.reduce(mine).wait()
    check(state, others)
    check(adasum.torch.State(), odd)


def test_no_compiled_kernels(emulated, device):
    state = adasum.torch.State(kernels="compiled")
    with pytest.raises(adasum.Error, match='kernels="compiled"' if is_odd_one() else "rank|different|kernels"):
        state.reduce(torch.ones(3, device=device if is_odd_one() else "cpu")).wait()
    check(state, torch.device("cpu"))


def test_kernels_that_do_not_exist(device):
    with pytest.raises(adasum.Error, match='not "cuda"' if is_odd_one() else "rank|different|kernels"):
        adasum.torch.State(kernels="cuda" if is_odd_one() else "auto")
        if world()[1] == 1:
            pytest.fail("nothing was raised")


@pytest.mark.parametrize("operator", ["aten::sum", "aten::mul"])
def test_an_operator_that_fails_on_one_process(emulated, device, operator):
    """All hear of it, nobody waits, and the next reduction is right."""
    state = adasum.torch.State()
    for seed in range(3):
        check(state, device, seed)
    mine = torch.ones(1000, device=device)
    if is_odd_one():
        emulated.let_fail(operator)
    with pytest.raises(Exception, match=f"{operator} failed" if is_odd_one() else "rank"):
        state.reduce(mine).wait()
    mine.add_(1)  # which nothing uses any more
    for seed in range(3):
        check(state, device, seed)


def test_a_process_without_memory(emulated, device):
    state = adasum.torch.State()
    check(state, device)
    mine = torch.ones(100_000, device=device)
    try:
        emulated.set_limit(2_000_000 if is_odd_one() else 1 << 40)
        with pytest.raises(Exception, match="out of memory" if is_odd_one() else "rank"):
            state.reduce(mine).wait()
    finally:
        emulated.set_limit(1 << 40)
    check(state, device)


def test_operators_do_not_grow_with_segments(emulated, device):
    state, counts = adasum.torch.State(), []
    for segments in (1, 161, 2000):
        for _ in range(2):
            emulated.operators()
            state.reduce(torch.ones(2000 * 10, device=device), [20000 // segments] * (segments - 1)
                         + [20000 - 20000 // segments * (segments - 1)]).wait()
            counts.append(sum(emulated.operators().values()))
    assert max(counts) <= 60 + 25 * world()[1], counts  # of which two are of the test


def test_a_tensor_that_is_dropped(emulated, device):
    """Its memory is not given away while it is still being reduced."""
    futures = []
    state = adasum.torch.State()
    for _ in range(10):
        futures.append(state.reduce(torch.ones(1000, device=device)))
    del futures[::2]
    for future in futures:
        assert (future.wait() == 1).all()


def test_what_follows_a_reduction(device):
    """A function that a future calls, and the program itself, see the result."""
    state = adasum.torch.State()
    mine = torch.ones(1000, device=device)
    doubled = state.reduce(mine).then(lambda done: done.value() * 2)
    assert (doubled.wait() == 2).all()
    mine.add_(1)
    assert (state.reduce(mine).wait() == 2).all()
