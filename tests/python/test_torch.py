# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adasum.torch among processes: processes.py N python3 -m pytest test_torch.py"""

import copy
import datetime
import gc
import io
import os
import pickle
import time

import pytest
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import adasum.torch


@pytest.fixture(scope="module", autouse=True)
def processes():
    torch.set_num_threads(1)
    torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = 256  # so that these small networks have several buckets
    torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    yield
    torch.distributed.destroy_process_group()


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


@pytest.mark.parametrize("rule, per_layer", [("adasum", True), ("adasum", False), ("mean", True), ("geometric_median", False),
                                             ("centred_clipping:radius=2,per_segment=yes", True)])
@pytest.mark.parametrize("bucket_cap_mb", [25, 0.0002])  # one bucket, or several
def test_hook(rule, per_layer, bucket_cap_mb):
    ddp = DistributedDataParallel(network(), bucket_cap_mb=bucket_cap_mb)
    ddp.register_comm_hook(adasum.torch.State(rule=rule, per_layer=per_layer), adasum.torch.hook)
    for step in range(4):  # buckets are cut otherwise after the first one
        found = backward(ddp, step)
        require_same_bits(found)
        require_close(found, combined([gradients_of(rank, step) for rank in range(world()[1])], rule, per_layer))


def test_rule_for_the_whole_model():
    """A rule that has one set of weights for all layers has it for all buckets."""
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.0002)
    state = adasum.torch.State(rule="multi_krum:byzantine=0")
    ddp.register_comm_hook(state, adasum.torch.hook)
    for step in range(3):
        found = backward(ddp, step)
    expected = combined([gradients_of(rank, 2) for rank in range(world()[1])], "multi_krum:byzantine=0", per_layer=False)
    require_close(found, expected)
    assert len(state.reports()) == 1


def test_wire_and_reports():
    found = []
    state = adasum.torch.State(wire="bfloat16", report_every=2, on_report=lambda step, reports: found.append((step, reports)))
    ddp = DistributedDataParallel(network(), bucket_cap_mb=0.0002)
    ddp.register_comm_hook(state, adasum.torch.hook)
    for step in range(5):
        backward(ddp, step)
    assert [step for step, _ in found] == [2, 4]
    buckets = len(found[1][1])
    assert buckets > 1 and len(state.reports()) == buckets
    for report in state.reports():
        assert report["contributions"] == world()[1] and report["step"] == 5 and report["rule"] == "adasum"
    assert sum(len(report["weights"]) for report in state.reports()) == len(list(ddp.parameters()))


def test_convolutions():
    """Parameters whose gradients are no rows."""
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3)).to(memory_format=torch.channels_last)
    ddp = DistributedDataParallel(model)
    ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
    torch.manual_seed(world()[0])
    for _ in range(2):
        ddp.zero_grad()
        ddp(torch.randn(2, 1, 8, 8)).square().mean().backward()
        require_same_bits([parameter.grad for parameter in ddp.parameters()])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_types(dtype):
    rank, size = world()
    state = adasum.torch.State()
    one = torch.zeros(size, dtype=dtype)
    one[rank] = rank + 1
    assert state.reduce(one).wait() is one
    assert one.tolist() == [r + 1 for r in range(size)]  # they are orthogonal
    state.reduce(one, [0, size]).wait()
    torch.testing.assert_close(one, torch.arange(1, size + 1, dtype=dtype))  # they are equal


def test_overflow_on_one_rank_is_seen_by_all():
    rank, size = world()
    for policy in ("propagate", "exclude", "raise"):
        state = adasum.torch.State(nonfinite=policy)
        one = torch.full((8,), 65504.0, dtype=torch.float16)
        if rank == size - 1:
            one *= 2  # Inf
        future = state.reduce(one)
        if policy == "raise":
            with pytest.raises(adasum.NonfiniteError):
                future.wait()
        elif policy == "propagate":
            assert not future.wait().isfinite().any()
        else:
            assert (future.wait() == (65504 if size > 1 else 0)).all()


def test_what_one_rank_does_wrong_all_hear():
    rank, size = world()
    state = adasum.torch.State()
    good = torch.ones(64)
    state.reduce(good).wait()
    wrong = [torch.ones(64, dtype=torch.int64), torch.ones(128)[::2], torch.ones(64, device="meta")]
    for one in wrong:
        future = state.reduce(one if rank == size - 1 else good)
        with pytest.raises(adasum.BadInput if rank == size - 1 else adasum.Error):
            future.wait()
        state.reduce(good).wait()
    assert (good == 1).all()
    with pytest.raises(adasum.Error):  # lengths that do not add up
        state.reduce(good, [60]).wait()
    with pytest.raises(adasum.Error):  # a new plan, which one rank does not make
        state.reduce(torch.ones(10) if rank else torch.ones(20)[::2]).wait()
    state.reduce(good).wait()


def test_a_state_that_one_rank_cannot_make():
    rank, size = world()
    for check, heard in ((False, adasum.CommunicationError), (True, adasum.AgreementError)):
        for wrong in ({"rule": "nonsense"}, {"rule": 3}, {"report_every": -1}):
            with pytest.raises(adasum.BadInput if rank == size - 1 else heard):
                adasum.torch.State(check_agreement=check, **(wrong if rank == size - 1 else {}))
    with pytest.raises(adasum.BadInput if rank == size - 1 else adasum.CommunicationError):
        adasum.torch.State(wire="nonsense" if rank == size - 1 else "same")
    adasum.torch.State().reduce(torch.ones(3)).wait()


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


def test_equal_layers_have_states_of_their_own():
    """What a rule keeps about a layer is not another layer's, although they are of equal length."""
    rule = "adacons:momentum=0.9,per_segment=yes"
    apart, together = adasum.torch.State(rule=rule), adasum.torch.State(rule=rule)
    torch.manual_seed(world()[0])
    for _ in range(4):
        whole = torch.randn(3, 50)
        parts = [one.clone() for one in whole]
        apart.begin_step()
        for future in [apart.reduce(one) for one in parts]:
            future.wait()
        together.begin_step()
        together.reduce(whole.view(-1), [50, 50, 50]).wait()
        require_close(parts, list(whole))


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
    group = torch.distributed.new_group(timeout=datetime.timedelta(seconds=1))
    state = adasum.torch.State(group)
    one = torch.ones(200_000)
    state.reduce(one).wait()
    torch.distributed.barrier()
    if rank == size - 1:
        time.sleep(3)
    begin = time.monotonic()
    with pytest.raises(adasum.CommunicationError):
        state.reduce(one).wait()
    assert time.monotonic() - begin < 2.5
    torch.distributed.barrier()


def test_on_report_that_raises_is_heard_by_all():
    rank, size = world()

    def show(step, reports):
        if rank == size - 1:
            raise KeyError("mine")

    state = adasum.torch.State(report_every=1, on_report=show)
    ddp = DistributedDataParallel(torch.nn.Linear(10, 3, bias=False))  # one bucket
    ddp.register_comm_hook(state, adasum.torch.hook)
    backward(ddp)
    # PyTorch 1.13 makes a RuntimeError of the function's own exception.
    is_mine = rank == size - 1
    with pytest.raises((KeyError, RuntimeError) if is_mine else RuntimeError, match="'mine'" if is_mine else "rank"):
        backward(ddp)


def test_error_in_backward_names_what_is_wrong():
    state = adasum.torch.State(nonfinite="raise")
    ddp = DistributedDataParallel(network())
    ddp.register_comm_hook(state, adasum.torch.hook)
    x, y = batch_of(0)
    with pytest.raises(Exception, match="[Ii]nf|NaN|finite"):
        torch.nn.functional.mse_loss(ddp(x * float("inf")), y).backward()


def test_bad_state():
    with pytest.raises(adasum.BadInput, match="there is no rule"):
        adasum.torch.State(rule="nonsense")
    with pytest.raises(adasum.BadInput, match="colour"):
        adasum.torch.State(colour="red")
    with pytest.raises(adasum.BadInput, match="on_report"):
        adasum.torch.State(report_every=1)
    for wrong in ({"report_every": -1, "on_report": print}, {"on_report": print}, {"rule": 3}, {"shard": (0,)}, {"shard": (-1, 0)},
                  {"process_group": 3}):
        with pytest.raises(adasum.BadInput):
            adasum.torch.State(**wrong)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(adasum.torch.State())


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


@pytest.mark.parametrize("make", [lambda p: torch.optim.Adam(p, lr=1e-2), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)])
@pytest.mark.parametrize("per_layer", [True, False])
def test_delta_optimizer(make, per_layer):
    size = world()[1]
    model = network()
    optimizer = adasum.torch.DeltaOptimizer(make(model.parameters()), per_layer=per_layer)
    alone = [network() for _ in range(size)]  # each process's model, which all have here
    optimizers = [make(one.parameters()) for one in alone]
    for step in range(3):
        x, y = batch_of(world()[0], step)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

        before = [parameter.detach().clone() for parameter in alone[0].parameters()]
        for rank, (one, own) in enumerate(zip(alone, optimizers)):
            x, y = batch_of(rank, step)
            own.zero_grad()
            torch.nn.functional.mse_loss(one(x), y).backward()
            own.step()
        changes = [[p.detach() - old for p, old in zip(one.parameters(), before)] for one in alone]
        whole = combined(changes, per_layer=per_layer)
        with torch.no_grad():
            for one in alone:
                for parameter, old, change in zip(one.parameters(), before, whole):
                    parameter.copy_(old + change)
        require_close([p.detach() for p in model.parameters()], [p.detach() for p in alone[0].parameters()])
        require_same_bits([p.detach() for p in model.parameters()])
    assert optimizer.reports()[0]["contributions"] == size
    saved = optimizer.state_dict()
    assert saved["state"].keys() == optimizers[0].state_dict()["state"].keys()
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == optimizers[0].param_groups[0]["lr"]


def local_step(model, optimizer, step=0):
    x, y = batch_of(world()[0], step)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    require_same_bits([parameter.detach() for parameter in model.parameters()])


@pytest.mark.filterwarnings("error:.*lr_scheduler.step:UserWarning")  # as if optimizer.step() had not been called
@pytest.mark.parametrize("make", [lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5),
                                  lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8)])
def test_delta_optimizer_with_a_scheduler(make):
    """As the wrapped one alone has it."""
    model, alone = network(), network()
    plain = torch.optim.SGD(alone.parameters(), lr=0.02, momentum=0.9)
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9))
    assert isinstance(optimizer, torch.optim.Optimizer) and optimizer.defaults == plain.defaults
    schedulers = [make(optimizer), make(plain)]
    seen = []
    for step in range(6):
        groups = [optimizer.param_groups[0], optimizer.optimizer.param_groups[0], plain.param_groups[0]]
        seen.append((groups[2]["lr"], groups[2]["momentum"]))
        assert all((group["lr"], group["momentum"]) == seen[-1] for group in groups)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        local_step(model, optimizer, step)
        assert not all(map(torch.equal, before, model.parameters()))
        plain.step()
        for scheduler in schedulers:
            scheduler.step()
    assert len(set(seen)) > 2


def test_delta_optimizer_goes_on_from_a_saved_state():
    make = lambda model: adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters(), lr=0.01))  # noqa: E731
    model, other = network(), network(seed=2)
    optimizer, restored = make(model), make(other)
    for step in range(3):
        local_step(model, optimizer, step)
    file = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], file)
    file.seek(0)
    of_model, of_optimizer = torch.load(file)
    other.load_state_dict(of_model)
    restored.load_state_dict(of_optimizer)
    assert restored.param_groups is restored.optimizer.param_groups and restored.state is restored.optimizer.state
    assert len(restored.state) == 4
    for group in (optimizer.param_groups[0], restored.param_groups[0]):
        group["lr"] = 0.02
    for step in range(3, 5):
        local_step(model, optimizer, step)
        local_step(other, restored, step)
    assert all(map(torch.equal, model.parameters(), other.parameters()))
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="pickled or copied"):
            copied(optimizer)


@pytest.mark.parametrize("per_layer", [True, False])
def test_delta_optimizer_takes_further_parameters(per_layer):
    rank, size = world()
    first, second = (torch.nn.Parameter(torch.zeros(size)) for _ in range(2))
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD([first], lr=1.0), per_layer=per_layer)

    def step():
        for one in (first, second):
            one.grad = torch.zeros(size)
            one.grad[rank] = -1.0  # orthogonal: they are added
        optimizer.step()

    step()
    assert first.tolist() == [1] * size and second.tolist() == [0] * size
    optimizer.add_param_group({"params": [second], "lr": 2.0})
    assert len(optimizer.param_groups) == len(optimizer.optimizer.param_groups) == 2
    step()
    assert first.tolist() == [2] * size and second.tolist() == [2] * size
    with pytest.raises(adasum.BadInput, match="which is no list"):
        adasum.torch.DeltaOptimizer([first])


@pytest.mark.skipif(not hasattr(torch.optim.Optimizer, "register_state_dict_post_hook"),
                    reason="this PyTorch has no such hooks")
def test_hooks_of_delta_optimizer():
    """Those of a step see the combined parameters, those of a state the wrapped optimizer's."""
    model = network()
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    seen = []
    optimizer.register_step_pre_hook(lambda of, *_: seen.append(("before", of, [p.tolist() for p in model.parameters()])))
    optimizer.register_step_post_hook(lambda of, *_: seen.append(("after", of, [p.tolist() for p in model.parameters()])))
    optimizer.register_state_dict_pre_hook(lambda of: seen.append(("saves", of)))
    optimizer.register_state_dict_post_hook(lambda of, state: seen.append(("saved", of)))
    optimizer.register_load_state_dict_pre_hook(lambda of, state: seen.append(("loads", of)))
    optimizer.register_load_state_dict_post_hook(lambda of: seen.append(("loaded", of)))
    first = [p.tolist() for p in model.parameters()]
    local_step(model, optimizer)
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen == [("before", optimizer, first), ("after", optimizer, [p.tolist() for p in model.parameters()]),
                    *((what, optimizer.optimizer) for what in ("saves", "saved", "loads", "loaded"))]


def test_delta_optimizer_where_one_step_fails():
    """The others hear of it, and no parameters have changed."""
    rank, size = world()

    class Failing(torch.optim.SGD):
        fails = False

        def step(self, closure=None):
            super().step(closure)
            if self.fails:
                raise KeyError("mine")

    for policy in ("propagate", "raise"):
        model = network()
        own = Failing(model.parameters(), lr=0.1)
        optimizer = adasum.torch.DeltaOptimizer(own, nonfinite=policy)
        for step in range(3):
            before = [parameter.detach().clone() for parameter in model.parameters()]
            optimizer.zero_grad()
            x, y = batch_of(rank, step)
            torch.nn.functional.mse_loss(model(x), y).backward()
            if step != 1:
                optimizer.step()
                continue
            if rank == size - 1 and policy == "raise":
                model[0].bias.grad[0] = torch.nan
            own.fails = rank == size - 1 and policy == "propagate"
            with pytest.raises(adasum.NonfiniteError if policy == "raise" else KeyError if own.fails else adasum.Error):
                optimizer.step()
            own.fails = False
            for parameter, old in zip(model.parameters(), before):
                assert (parameter == old).all()
        require_same_bits([parameter.detach() for parameter in model.parameters()])


def test_delta_optimizer_wants_equal_parameters():
    rank, size = world()
    if size == 1:
        return
    for make in (network, lambda seed: network(seed).to(torch.bfloat16)):
        model = make(seed=1 + rank // (size - 1))
        optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        with pytest.raises(adasum.BadInput, match=f"process {size - 1} has other parameters than process 0"):
            optimizer.step()
