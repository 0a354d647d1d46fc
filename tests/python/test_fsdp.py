# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adasum.torch.apply_to_fsdp among four processes: processes.py 4 python3 -m pytest test_fsdp.py"""

import pytest
import torch
import torch.distributed

import adasum.torch
from ranks import batch_of, combined, device, gradients_of, require_close, require_same_bits

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

    has_hook = hasattr(FSDPModule, "set_all_reduce_hook")
except ImportError:
    has_hook = False

pytestmark = pytest.mark.usefixtures("process_group")
needs_hook = pytest.mark.skipif(not has_hook, reason="this PyTorch has no FSDPModule.set_all_reduce_hook")
names = ("replicate", "shard")


class Network(torch.nn.Module):
    """No parameter can be cut into equal parts; of `scale`, most processes have nothing."""

    def __init__(self, unused=False, overflows=False):
        super().__init__()
        torch.manual_seed(1)
        self.first = torch.nn.Linear(10, 7)
        self.second = torch.nn.Linear(7, 3)
        self.frozen = torch.nn.Parameter(torch.ones(5), requires_grad=False)
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.overflows = overflows
        if unused:
            self.unused = torch.nn.Parameter(torch.ones(9))

    def forward(self, x):
        if self.overflows:  # in one element of all
            self.scale.register_hook(lambda gradient: gradient * float("inf"))
        return self.scale * self.second(torch.tanh(self.first(x)))


def sharded(mesh, separately=True, make=Network, **options):
    """The network, given to fully_shard as a whole, or module by module."""
    model = make()
    for module in [model.first, model.second] if separately else []:
        fully_shard(module, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def trained(model):
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def whole(model):
    return [parameter.detach().full_tensor() for parameter in model.parameters()]


def backward(model, step=0, factor=1.0):
    """Of this process's batch. Returns whole gradients."""
    x, y = batch_of(torch.distributed.get_rank(), step)
    (factor * torch.nn.functional.mse_loss(model(x), y)).backward()
    return [parameter.grad.full_tensor() for parameter in trained(model)]


def mean_of(ranks, steps=(0,)):
    """The gradients of one replica."""
    all_of_them = [[g for g in gradients_of(rank, step, Network) if g is not None] for rank in ranks for step in steps]
    return [sum(gradients) / len(ranks) for gradients in zip(*all_of_them)]


def expected(mesh, rule="adasum", per_layer=True, steps=(0,)):
    """What the rule makes of the replicas' means, by calls on one process."""
    return combined([mean_of(ranks, steps) for ranks in mesh.mesh.tolist()], rule, per_layer)


@needs_hook
@pytest.mark.parametrize("shape", [(2, 2), (1, 4), (4, 1)])
@pytest.mark.parametrize("separately", [True, False])
@pytest.mark.parametrize("rule", ["adasum", "mean", "centred_clipping:radius=0.1,per_segment=yes"])
def test_is_the_rule_of_whole_gradients(shape, separately, rule):
    mesh = init_device_mesh(device(), shape, mesh_dim_names=names)
    model = sharded(mesh["shard"], separately)
    state = adasum.torch.apply_to_fsdp(model, mesh, rule)
    for step in range(3):
        model.zero_grad()
        found = backward(model, step)
        require_same_bits(found)
        require_close(found, expected(mesh, rule, steps=[step]))
    assert state.step == 3 and len(state.reports()) == (3 if separately else 1)
    for report in state.reports():
        assert report["contributions"] == shape[0] and report["step"] == 3
    assert sum(len(report["weights"]) for report in state.reports()) == len(trained(model))


@needs_hook
@pytest.mark.parametrize("rule, per_layer", [("adasum", False), ("multi_krum:byzantine=0", True)])
def test_rule_for_the_whole_model(rule, per_layer):
    mesh = init_device_mesh(device(), (2, 2), mesh_dim_names=names)
    model = sharded(mesh["shard"], separately=False)
    adasum.torch.apply_to_fsdp(model, mesh, rule, per_layer=per_layer)
    require_close(backward(model), expected(mesh, rule, per_layer=False))
    with pytest.raises(adasum.BadInput, match="one set of weights for the whole model.*3 modules"):
        adasum.torch.apply_to_fsdp(sharded(mesh["shard"]), mesh, rule, per_layer=per_layer)


@needs_hook
def test_training_keeps_replicas_equal():
    mesh = init_device_mesh(device(), (2, 2), mesh_dim_names=names)
    model = sharded(mesh["shard"])
    found = []
    adasum.torch.apply_to_fsdp(model, mesh, wire="bfloat16", report_every=2, on_report=lambda step, _: found.append(step))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(5):
        optimizer.zero_grad()
        backward(model, step)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        require_same_bits(whole(model))
    assert found == [2, 4]


@needs_hook
def test_accumulation():
    """Gradients of several backward passes are combined once."""
    mesh = init_device_mesh(device(), (2, 2), mesh_dim_names=names)
    model = sharded(mesh["shard"])
    state = adasum.torch.apply_to_fsdp(model, mesh)
    model.set_requires_gradient_sync(False)
    x, y = batch_of(torch.distributed.get_rank(), 0)
    torch.nn.functional.mse_loss(model(x), y).backward()
    model.set_requires_gradient_sync(True)
    require_close(backward(model, 1), expected(mesh, steps=[0, 1]))
    assert state.step == 1


@needs_hook
@pytest.mark.parametrize("reduce_dtype, tolerance", [(torch.bfloat16, 2e-2), (torch.float16, 3e-3), (torch.float64, 1e-6)])
@pytest.mark.parametrize("shape", [(2, 2), (1, 4)])
def test_types(reduce_dtype, tolerance, shape):
    mesh = init_device_mesh(device(), shape, mesh_dim_names=names)
    model = sharded(mesh["shard"], mp_policy=MixedPrecisionPolicy(reduce_dtype=reduce_dtype))
    adasum.torch.apply_to_fsdp(model, mesh)
    for one, other in zip(backward(model), expected(mesh)):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance * float(other.abs().max()))


class Complex(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.weight = torch.nn.Parameter(torch.randn(5, 2, dtype=torch.complex64))

    def forward(self, x):
        return (self.weight * x).abs().square().sum()


@needs_hook
@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_complex(shape):
    mesh = init_device_mesh(device(), shape, mesh_dim_names=names)
    model = fully_shard(Complex(), mesh=mesh["shard"])
    adasum.torch.apply_to_fsdp(model, mesh)

    def batch_of(rank):
        torch.manual_seed(rank)
        return torch.randn(5, 2, dtype=torch.complex64)

    def gradient_of(rank):
        alone = Complex()
        alone(batch_of(rank)).backward()
        return torch.view_as_real(alone.weight.grad)

    model(batch_of(torch.distributed.get_rank())).backward()
    means = [[sum(gradient_of(rank) for rank in replica) / shape[1]] for replica in mesh.mesh.tolist()]
    require_close([torch.view_as_real(model.weight.grad.full_tensor())], combined(means))


@needs_hook
def test_overflow_in_one_replica():
    rank = torch.distributed.get_rank()
    mesh = init_device_mesh(device(), (2, 2), mesh_dim_names=names)

    def with_overflow(policy):
        model = sharded(mesh["shard"])
        adasum.torch.apply_to_fsdp(model, mesh, nonfinite=policy)
        return backward(model, factor=float("inf") if rank == 3 else 1.0)

    assert not any(gradient.isfinite().all() for gradient in with_overflow("propagate"))
    found = with_overflow("exclude")
    require_same_bits(found)
    require_close(found, mean_of([0, 1]))
    with pytest.raises(Exception, match="[Ii]nf|NaN|finite"):
        with_overflow("raise")


@needs_hook
def test_overflow_that_one_process_has():
    """In an element of which the other process of the replica has nothing."""
    mesh = init_device_mesh(device(), (2, 2), mesh_dim_names=names)
    for policy, is_skipped in ("propagate", True), ("exclude", False):
        model = sharded(mesh["shard"], make=lambda: Network(overflows=torch.distributed.get_rank() == 3))
        state = adasum.torch.apply_to_fsdp(model, mesh, nonfinite=policy)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler(device="cpu", init_scale=16.0)
        before = whole(model)
        found = backward(model, factor=scaler.scale(torch.ones(())))
        if not is_skipped:
            require_close([one / 16 for one in found], [mean_of([0, 1])[0], *expected(mesh)[1:]])
            assert sorted(report["excluded"] for report in state.reports()) == [[], [], [1]]
        scaler.step(optimizer)
        scaler.update()
        after = whole(model)
        require_same_bits([*after, torch.tensor([scaler.get_scale()])])
        assert scaler.get_scale() == (8 if is_skipped else 16)
        assert all(map(torch.equal, before, after)) == is_skipped


@needs_hook
def test_part_of_the_processes():
    """The mesh is a part of another one, as with pipelines: two models train beside each other."""
    mesh = init_device_mesh(device(), (2, 2, 1), mesh_dim_names=("pipeline", *names))[names]
    model = sharded(mesh["shard"])
    adasum.torch.apply_to_fsdp(model, mesh)
    require_close(backward(model), expected(mesh))


@needs_hook
def test_unused_parameters():
    mesh = init_device_mesh(device(), (2, 2), mesh_dim_names=names)

    def applied(make):
        model = sharded(mesh["shard"], make=make)
        adasum.torch.apply_to_fsdp(model, mesh)
        return model

    with pytest.raises(adasum.BadInput, match="module '': some of its parameters.*set_reduce_scatter_unused_params"):
        backward(applied(lambda: Network(unused=True)))
    replica = torch.distributed.get_rank() // 2  # all hear of what is wrong in one replica
    with pytest.raises(adasum.BadInput if replica else adasum.Error):
        backward(applied(lambda: Network(unused=replica == 1)))
    if hasattr(FSDPModule, "set_reduce_scatter_unused_params"):
        model = applied(lambda: Network(unused=True))
        model.set_reduce_scatter_unused_params(True)
        found = backward(model)
        require_close(found[:1] + found[2:], expected(mesh))
        assert (found[1] == 0).all()


@needs_hook
def test_bad_input():
    mesh = init_device_mesh(device(), (2, 2), mesh_dim_names=names)
    row = torch.distributed.get_rank() // 2 * 2
    for model, on, message in [
            (sharded(mesh["shard"]), mesh["shard"], r"1 dimension\(s\); it needs two"),
            (sharded(mesh["shard"]), None, "must be a DeviceMesh, not NoneType"),
            (Network(), mesh, "no sharded parameters; call fully_shard first"),
            (list(Network().parameters()), mesh, "must be a torch.nn.Module, not list"),
            (sharded(mesh), mesh, "module '': fully_shard got both dimensions of the mesh"),
            (sharded(mesh["replicate"]), mesh, rf"over the processes \[\d, \d\], but the mesh says \[{row}, {row + 1}\]")]:
        with pytest.raises(adasum.BadInput, match=message):
            adasum.torch.apply_to_fsdp(model, on)
    model = sharded(mesh["shard"])
    with pytest.raises(adasum.BadInput, match="there is no rule"):
        adasum.torch.apply_to_fsdp(model, mesh, "nonsense")
    with pytest.raises(adasum.BadInput, match="colour"):
        adasum.torch.apply_to_fsdp(model, mesh, colour="red")


@pytest.mark.skipif(has_hook, reason="this PyTorch has FSDPModule.set_all_reduce_hook")
def test_old_pytorch():
    with pytest.raises(adasum.Error, match="has no FSDPModule.set_all_reduce_hook; use PyTorch 2.7 or later"):
        adasum.torch.apply_to_fsdp(torch.nn.Linear(2, 2), None)


def test_parts_of_any_lengths():
    """State.reduce of gradients that the program has cut itself: of each, the first part has 3 elements, the second 7."""
    rank = torch.distributed.get_rank()
    replica, part = rank % 2, rank // 2
    whole = [torch.arange(1.0, 11.0, device="cpu"), torch.linspace(3, -2, 10, device="cpu")]
    cut = lambda one: [torch.cat([one[:3], one[4:4]]), torch.cat([one[3:4], one[4:]])][part]  # noqa: E731
    lengths = [[3, 0], [1, 6]][part]
    mine = cut(whole[replica]).clone().to(device())
    adasum.torch.State(shard=(replica, part)).reduce(mine, lengths).wait()
    result = adasum.tree(whole, torch.empty_like(whole[0]), segments=[4, 6])[0]
    torch.testing.assert_close(mine.cpu(), cut(result))
    with pytest.raises(adasum.Error, match="shard|replica"):
        adasum.torch.State(shard=(0, rank)).reduce(mine, lengths).wait() if rank else \
            adasum.torch.State(shard=(7, 0)).reduce(mine, lengths).wait()
