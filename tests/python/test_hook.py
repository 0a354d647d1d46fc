# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adasum.torch.hook among processes: processes.py N python3 -m pytest test_hook.py"""

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
from ranks import backward, batch_of, combined, gradients_of, network, require_close, require_same_bits, world

pytestmark = pytest.mark.usefixtures("process_group")


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


def test_called_as_fsdp_calls_hooks():
    """FullyShardedDataParallel's register_comm_hook gives one tensor or two, and no bucket."""
    rank, size = world()
    state = adasum.torch.State()
    for more in ((), (torch.ones(4),)):
        with pytest.raises(adasum.BadInput, match="for DistributedDataParallel. For FSDP, use .*apply_to_fsdp"):
            adasum.torch.hook(state, torch.ones(8), *more)
    if rank == size - 1:  # all hear of it
        with pytest.raises(adasum.BadInput, match="apply_to_fsdp"):
            adasum.torch.hook(state, torch.ones(8))
    else:
        with pytest.raises(adasum.CommunicationError):
            state.reduce(torch.ones(8)).wait()
    assert (state.reduce(torch.ones(8)).wait() == 1).all()


@pytest.mark.skipif(torch.__version__ < "2", reason="this PyTorch has FullyShardedDataParallel for GPUs only")
@pytest.mark.parametrize("strategy", ["NO_SHARD", "FULL_SHARD"])
def test_registered_with_fsdp(strategy):
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    model = FullyShardedDataParallel(network(), sharding_strategy=ShardingStrategy[strategy], device_id=torch.device("cpu"))
    model.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
    with pytest.raises(Exception, match="For FSDP, use .*apply_to_fsdp"):
        model(batch_of(world()[0])[0]).sum().backward()


def test_without_a_state():
    for wrong in (None, torch.distributed.distributed_c10d._get_default_group(), adasum.torch.State):
        ddp = DistributedDataParallel(network())
        ddp.register_comm_hook(wrong, adasum.torch.hook)
        with pytest.raises(Exception, match="the state must be an adasum.torch.State, not"):
            ddp(batch_of(0)[0]).sum().backward()


def test_error_in_backward_names_what_is_wrong():
    state = adasum.torch.State(nonfinite="raise")
    ddp = DistributedDataParallel(network())
    ddp.register_comm_hook(state, adasum.torch.hook)
    x, y = batch_of(0)
    with pytest.raises(Exception, match="[Ii]nf|NaN|finite"):
        torch.nn.functional.mse_loss(ddp(x * float("inf")), y).backward()
