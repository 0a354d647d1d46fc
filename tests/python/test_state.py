# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adasum.torch.State among processes: its arguments, reductions, and end. processes.py N python3 -m pytest test_state.py"""

import copy
import datetime
import gc
import io
import os
import pickle
import subprocess
import sys
import time
import warnings

import pytest
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
from ranks import batch_of, is_odd_one, network, require_same_bits, world

pytestmark = pytest.mark.usefixtures("process_group")


def test_what_one_rank_does_wrong_all_hear():
    rank, size = world()
    state = adasum.torch.State()
    good = torch.ones(64)
    state.reduce(good).wait()
    wrong = [torch.ones(64, dtype=torch.int64), torch.ones(1).expand(64), torch.ones(64, device="meta")]
    for one in wrong:
        future = state.reduce(one if rank == size - 1 else good)
        with pytest.raises(adasum.BadInput if rank == size - 1 else adasum.Error):
            future.wait()
        state.reduce(good).wait()
    assert (good == 1).all()
    with pytest.raises(adasum.Error):  # lengths that do not add up
        state.reduce(good, [60]).wait()
    with pytest.raises(adasum.Error):  # a new plan, which one rank does not make
        state.reduce(torch.ones(10) if rank else torch.ones(1).expand(10)).wait()
    state.reduce(good).wait()


def test_a_state_that_one_rank_cannot_make():
    rank, size = world()
    for check, heard in ((False, adasum.CommunicationError), (True, adasum.AgreementError)):
        for wrong in ({"rule": "nonsense"}, {"rule": 300 * "é"}, {"rule": 3}, {"report_every": -1}, {"per_layer": "no"},
                      {"timeout": -1}):
            with pytest.raises(adasum.BadInput if rank == size - 1 else heard, match="."):
                adasum.torch.State(check_agreement=check, **(wrong if rank == size - 1 else {}))
    with pytest.raises(adasum.BadInput if rank == size - 1 else adasum.CommunicationError):
        adasum.torch.State(wire="nonsense" if rank == size - 1 else "same")
    adasum.torch.State().reduce(torch.ones(3)).wait()


@pytest.mark.parametrize("check", [False, True])
def test_processors_that_round_differently(check, monkeypatch):
    """By PyTorch's operators, on each process's own processor."""
    rank, size = world()
    if size == 1:
        pytest.skip("needs two processes")
    monkeypatch.setattr(adasum.torch.hooks, "_processors", lambda _: {"cpu": "the odd one" if is_odd_one() else "usual"})
    state = adasum.torch.State(kernels="pytorch", check_agreement=check)
    with pytest.raises(adasum.Error, match="the odd one" if check else "different calls"):
        state.reduce(torch.ones(3, device="cpu")).wait()
    adasum.torch.State(kernels="compiled").reduce(torch.ones(3, device="cpu")).wait()  # rounds alike on all of them


def test_reductions_that_differ_where_all_have_plans():
    """By PyTorch's operators, all find out at the end, if the messages were of equal lengths."""
    if world()[1] == 1:
        pytest.skip("needs two processes")
    state, mean = adasum.torch.State(kernels="pytorch"), adasum.torch.State(rule="mean", kernels="pytorch")
    kinds = [lambda: state.reduce(torch.ones(10), [5, 5]), lambda: state.reduce(torch.ones(10), [4, 6]),
             lambda: mean.reduce(torch.ones(10), [5, 5]), lambda: state.reduce(torch.ones(10, dtype=torch.float16)),
             lambda: state.reduce(torch.ones(10, dtype=torch.bfloat16)), lambda: state.reduce(torch.ones(10)),
             lambda: state.reduce(torch.ones(5, dtype=torch.float64))]
    for reduce in kinds:
        reduce().wait()
    for one, other in ((0, 1), (0, 2), (3, 4), (5, 6)):
        with pytest.raises(adasum.CommunicationError, match="different calls"):
            kinds[other if is_odd_one() else one]().wait()
        assert (kinds[one]().wait() == 1).all()


def test_whole_tensors():
    a = torch.cat([torch.ones(4), torch.zeros(4)]) if is_odd_one() else torch.ones(8)
    for per_layer, segments in ((True, 2), (False, 1)):
        state = adasum.torch.State(per_layer=per_layer)
        state.reduce(a.clone(), [4, 4]).wait()
        assert len(state.reports()[0]["orthogonalities"]) == segments


def test_arguments_that_are_no_tensor_or_no_lengths():
    rank, size = world()
    state = adasum.torch.State()
    good = torch.ones(4)
    for has_plan in (False, True):
        for wrong in (([1, 2],), (good, [-1, 5]), (good, [2.0, 2.0]), (good, [True] * 4), (good, 4), (None,)):
            future = state.reduce(*(wrong if rank == size - 1 else (good,)))
            with pytest.raises(adasum.BadInput if rank == size - 1 else adasum.Error):
                future.wait()
        assert (state.reduce(good).wait() == 1).all()


def test_two_states_of_one_group_at_once():
    rank, size = world()
    first, second = adasum.torch.State(), adasum.torch.State(rule="mean")
    for _ in range(20):
        a, b = torch.zeros(size * 300), torch.full((70,), rank + 1.0)
        a[rank * 300:(rank + 1) * 300] = rank + 1
        futures = first.reduce(a), second.reduce(b)
        for future in futures:
            future.wait()
        assert (a == torch.arange(1.0, size + 1).repeat_interleave(300)).all()
        assert (b == (size + 1) / 2).all()
    encoder, decoder = DistributedDataParallel(network()), DistributedDataParallel(torch.nn.Linear(3, 2))
    encoder.register_comm_hook(first, adasum.torch.hook)
    decoder.register_comm_hook(second, adasum.torch.hook)
    for step in range(3):
        decoder(encoder(batch_of(rank, step)[0])).square().mean().backward()
        require_same_bits([p.grad for p in [*encoder.parameters(), *decoder.parameters()]])


def test_reductions_without_steps_keep_one_report():
    state = adasum.torch.State()
    for length in (5, 6, 5, 5):
        state.reduce(torch.ones(length)).wait()
        assert len(state.reports()) == 1
    assert state.reports()[0]["step"] == 4


def test_a_state_dropped_on_its_own_thread():
    for _ in range(10):
        kept = [adasum.torch.State()]
        first, second = (kept[0].reduce(torch.ones(200_000)) for _ in range(2))
        dropped = first.then(lambda done: (kept.clear(), gc.collect(), done.value())[-1])
        assert (dropped.wait() == 1).all() and (second.wait() == 1).all()


def test_a_child_process_drops_its_state():
    state = adasum.torch.State()
    state.reduce(torch.ones(3)).wait()
    child = os.fork()
    if child == 0:
        try:
            state.reduce(torch.ones(3))
        except adasum.Error as problem:
            heard = "forked" in str(problem)
        del state
        os._exit(0 if heard else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_groups_timeout_is_that_of_reductions():
    rank, size = world()
    if size == 1:
        return
    group = torch.distributed.new_group(timeout=datetime.timedelta(seconds=5))  # also to connect, on a busy machine
    state = adasum.torch.State(group)
    one = torch.ones(200_000)
    state.reduce(one).wait()
    if rank == size - 1:
        torch.distributed.barrier()  # until the others have waited for it
    begin = time.monotonic()
    with pytest.raises(adasum.CommunicationError):
        state.reduce(one).wait()
    assert time.monotonic() - begin < 30  # other groups' timeout is a minute
    if rank < size - 1:
        torch.distributed.barrier()
    torch.distributed.barrier()


def test_bad_state():
    with pytest.raises(adasum.BadInput, match="there is no rule"):
        adasum.torch.State(rule="nonsense")
    with pytest.raises(adasum.BadInput, match="colour"):
        adasum.torch.State(colour="red")
    with pytest.raises(adasum.BadInput, match="on_report"):
        adasum.torch.State(report_every=1)
    for wrong in ({"report_every": -1, "on_report": print}, {"on_report": print}, {"rule": 3}, {"shard": (0,)},
                  {"shard": (-1, 0)},
                  {"process_group": 3}):
        with pytest.raises(adasum.BadInput):
            adasum.torch.State(**wrong)


def test_a_group_without_a_default_group(monkeypatch):
    rank, size = world()
    group = torch.distributed.distributed_c10d._get_default_group()
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False)
    one = torch.full((4,), rank + 1.0)
    adasum.torch.State(group, rule="sum").reduce(one).wait()
    assert (one == size * (size + 1) / 2).all()
    with pytest.raises(adasum.BadInput, match="init_process_group has not been called"):
        adasum.torch.State().reduce(one)


def test_a_group_that_wraps_another():
    """As those of torchft do, whose size is known to Python alone."""
    class Wrapper(torch.distributed.ProcessGroup):
        def size(self):
            return 2

    with pytest.raises(adasum.BadInput, match="Wrapper wraps a process group; give the group that it wraps"):
        adasum.torch.State(Wrapper(0, 1))


def reloaded(state):
    return pickle.loads(pickle.dumps(state))


def ignore(step, reports):
    """A function for reports that can be saved."""


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, reloaded])
def test_copies(copied):
    """Have the same settings, and connect when they are used first."""
    rank, size = world()
    state = adasum.torch.State(rule="mean", per_layer=False, nonfinite="exclude", report_every=2, on_report=ignore)
    for _ in range(3):
        state.begin_step()
        state.reduce(torch.ones(5)).wait()
    other = copied(state)
    assert other.step == 0 and other.reports() == []
    del state
    one = torch.full((4,), rank + 1.0)
    if rank == size - 1:
        one[0] = float("nan")
    expected = (sum(range(1, size)) / (size - 1)) if size > 1 else 0
    assert (other.reduce(one).wait() == expected).all()
    assert other.reports()[0]["rule"] == "mean"
    model = DistributedDataParallel(network())
    model.register_comm_hook(other, adasum.torch.hook)
    for step in range(3):
        torch.nn.functional.mse_loss(*(lambda x, y: (model(x), y))(*batch_of(rank, step))).backward()
    assert len(other.reports()) == 1  # of the whole model


def test_copies_of_a_state_with_a_group_of_its_own():
    rank, size = world()
    if size < 3:
        return
    group = torch.distributed.new_group([0, 1])
    if rank < 2:
        state = adasum.torch.State(group, rule="sum")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert copy.deepcopy(state).reduce(torch.ones(4)).wait().tolist() == [2] * 4
        with pytest.warns(UserWarning, match="now uses the default group"):
            loaded = reloaded(state)
    else:
        loaded = adasum.torch.State(rule="sum")  # waits for the first use of the others
    assert loaded.reduce(torch.ones(4)).wait().tolist() == [size] * 4


def test_copies_of_models():
    """copy.deepcopy, AveragedModel and torch.save of a DistributedDataParallel with the hook. PyTorch does not copy hooks."""
    rank, size = world()
    ddp = DistributedDataParallel(network())
    ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
    torch.nn.functional.mse_loss(ddp(batch_of(rank)[0]), batch_of(rank)[1]).backward()
    ddp.zero_grad(set_to_none=True)
    saved = io.BytesIO()
    torch.save(ddp, saved)
    saved.seek(0)
    loaded = torch.load(saved, **({"weights_only": False} if torch.__version__ > "2" else {}))
    averaged = torch.optim.swa_utils.AveragedModel(ddp)
    averaged.update_parameters(ddp)
    for one in (copy.deepcopy(ddp), averaged.module, loaded):
        assert all(map(torch.equal, one.parameters(), ddp.parameters()))
    for _, state in getattr(loaded, "_comm_hooks", []):
        assert state.step == 0
    for one in (copy.deepcopy(ddp), loaded):
        one.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
        x, y = batch_of(rank)
        torch.nn.functional.mse_loss(one(x), y).backward()
        require_same_bits([p.grad for p in one.parameters()])


def test_before_the_process_group(tmp_path):
    """In a process of its own, without a process group at first; then with one, and another one."""
    rank, size = world()
    program = """
import pytest, sys, torch, adasum.torch
for wrong in ({"rule": "nonsense"}, {"rule": 3}, {"colour": "red"}, {"wire": "x"}, {"report_every": -1}, {"shard": 3},
              {"process_group": 3}):
    with pytest.raises(adasum.BadInput):
        adasum.torch.State(**wrong)
state, kept = adasum.torch.State(rule="sum"), adasum.torch.State(rule="mean")
assert state.reports() == []
weight = torch.ones(3, requires_grad=True)
optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD([weight], lr=0.5), rule="sum")
for use in (lambda: state.reduce(torch.ones(3)), state.begin_step, optimizer.step):
    with pytest.raises(adasum.BadInput, match="init_process_group has not been called"):
        use()
for name in "first", "second":  # a State follows the default group
    torch.distributed.init_process_group("gloo", store=torch.distributed.FileStore(f"{sys.argv[1]}-{name}", int(sys.argv[3])),
                                         rank=int(sys.argv[2]), world_size=int(sys.argv[3]))
    size = torch.distributed.get_world_size()
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    ddp.register_comm_hook(state, adasum.torch.hook)
    ddp(torch.ones(1, 3)).sum().backward()
    assert (ddp.module.weight.grad == size).all() and state.reports()
    assert (kept.reduce(torch.ones(3)).wait() == 1).all()
    before, weight.grad = weight.detach().clone(), torch.ones(3)
    optimizer.step()
    assert torch.equal(weight.detach(), before - size / 2)
    torch.distributed.barrier()
    del ddp
    torch.distributed.destroy_process_group()
assert state.reports()
"""
    path = [str(tmp_path / "store")]
    torch.distributed.broadcast_object_list(path)  # that of process 0
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, path[0], str(rank), str(size)], capture_output=True,
                          text=True, timeout=120)
    torch.distributed.barrier()
    assert done.returncode == 0, done.stderr


def test_groups():
    """The processes of a group alone take part."""
    rank, size = world()
    if size < 2:
        return
    group = torch.distributed.new_group([0, 1])
    if rank < 2:
        one = torch.full((4,), rank + 1.0)
        adasum.torch.State(group, rule="mean").reduce(one).wait()
        assert one.tolist() == [1.5] * 4
    torch.distributed.barrier()
