# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adasum.torch.DeltaOptimizer in programs that take it for an optimizer of torch.optim, and around optimizers of any shape.
processes.py N python3 -m pytest test_delta_programs.py"""

import copy
import importlib
import inspect
import sys

import pytest
import torch

import adasum.torch
from ranks import network, require_same_bits, world
from test_delta_agreement import give_gradients, ones

pytestmark = pytest.mark.usefixtures("process_group")
of_torch = sys.modules[torch.optim.Optimizer.__module__]


def part_of_torch(name):
    try:
        return importlib.import_module(f"torch.{name}")
    except Exception:  # not only ImportError: importing those of Debian 12 fails under its own Python
        pytest.skip(f"this PyTorch has no torch.{name}")


class Unusual(torch.optim.SGD):
    """Its step has no closure, its zero_grad no set_to_none, and it has an attribute that programs set."""

    strength = 1.0

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for one in group["params"]:
                    one.sub_(self.strength * one.grad)

    def zero_grad(self):
        super().zero_grad()


def mean_of(own, **options):
    optimizer = adasum.torch.DeltaOptimizer(own, rule="mean", **options)
    give_gradients(optimizer)
    return optimizer


def test_a_step_without_a_closure():
    one = ones(2)
    optimizer = mean_of(Unusual([one], lr=1.0))
    optimizer.step()
    optimizer.step(None)
    optimizer.step(closure=None)
    assert one.tolist() == [-2, -2]
    with pytest.raises(TypeError):
        optimizer.step(lambda: 1.0)
    assert one.tolist() == [-2, -2]


def test_a_step_with_further_arguments():
    class Scaled(torch.optim.SGD):
        def step(self, closure=None, scale=1.0, *, offset=0.0):
            with torch.no_grad():
                self.param_groups[0]["params"][0].sub_(scale).sub_(offset)
            return closure, scale, offset

    one = ones(2)
    optimizer = mean_of(Scaled([one], lr=1.0))
    assert optimizer.step(None, 2.0, offset=1.0) == (None, 2.0, 1.0)
    assert optimizer.step(closure=abs, scale=3.0) == (abs, 3.0, 0.0)
    assert one.tolist() == [-5, -5]


def test_the_signature_of_zero_grad():
    """At which some programs look."""
    plain, unusual = mean_of(torch.optim.SGD([ones(2)], lr=1.0)), mean_of(Unusual([ones(2)], lr=1.0))
    assert "set_to_none" in inspect.signature(plain.zero_grad).parameters
    assert "set_to_none" not in inspect.signature(unusual.zero_grad).parameters
    plain.zero_grad(set_to_none=False)
    assert plain.param_groups[0]["params"][0].grad.tolist() == [0, 0]
    plain.zero_grad(set_to_none=True)
    assert plain.param_groups[0]["params"][0].grad is None
    unusual.zero_grad()
    plain.zero_grad = lambda: "patched"
    assert plain.zero_grad() == "patched"


def test_attributes():
    """That of the wrapped optimizer is set where it is read."""
    one = ones(2)
    optimizer = mean_of(Unusual([one], lr=1.0))
    optimizer.strength = 3.0
    optimizer.step()
    assert one.tolist() == [-2, -2] and optimizer.optimizer.strength == 3
    del optimizer.strength
    assert optimizer.strength == 1
    optimizer.mark = 5  # which neither has
    assert optimizer.mark == 5 and not hasattr(optimizer.optimizer, "mark")
    del optimizer.mark
    assert not hasattr(optimizer, "mark")
    optimizer.param_groups = [{"params": [one], "lr": 7.0}]
    assert optimizer.optimizer.param_groups is optimizer.param_groups and optimizer.param_groups[0]["lr"] == 7


def test_a_closure_that_needs_gradients():
    """As if the wrapped optimizer were called directly: some call their closure without asking for gradients."""
    class Plain(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure):
            loss = closure()
            with torch.no_grad():
                for one in self.param_groups[0]["params"]:
                    one.sub_(one.grad)
            return loss

    model = network()

    def closure():
        loss = model(torch.full((4, 10), 1.0 + world()[0])).square().mean()
        loss.backward()
        return loss

    optimizer = adasum.torch.DeltaOptimizer(Plain(model.parameters()))
    before = [one.detach().clone() for one in model.parameters()]
    assert optimizer.step(closure).requires_grad
    assert not any(map(torch.equal, before, model.parameters()))
    require_same_bits([one.detach() for one in model.parameters()])


@pytest.mark.skipif(not hasattr(of_torch, "register_optimizer_step_post_hook"), reason="this PyTorch has no such hooks")
@pytest.mark.parametrize("has_scheduler", [True, False])
def test_hooks_for_all_optimizers(has_scheduler):
    """They count one step, and see combined parameters; those of the wrapped optimizer itself see its own step."""
    one = ones(2)
    own = torch.optim.SGD([one], lr=1.0)
    if has_scheduler:
        torch.optim.lr_scheduler.ConstantLR(own, factor=1.0)  # which replaces own.step
    seen = []
    own.register_step_post_hook(lambda of, *_: seen.append(("own", of, one.tolist())))
    optimizer = mean_of(own)
    one.grad = torch.full((2,), 2.0 * world()[0])
    handles = [of_torch.register_optimizer_step_pre_hook(lambda of, *_: seen.append(("before", of, one.tolist()))),
               of_torch.register_optimizer_step_post_hook(lambda of, *_: seen.append(("after", of, one.tolist())))]
    try:
        optimizer.step()
    finally:
        for handle in handles:
            handle.remove()
    rank, size = world()
    assert seen == [("before", optimizer, [1, 1]), ("own", own, [1 - 2 * rank] * 2), ("after", optimizer, [2 - size] * 2)]
    assert len(of_torch._global_optimizer_post_hooks) == 0


@pytest.mark.parametrize("of_wrapped", [True, False])
@pytest.mark.filterwarnings("error:.*lr_scheduler.step:UserWarning")
def test_a_scheduler_of_either(of_wrapped):
    one = ones(2)
    own = torch.optim.SGD([one], lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(own, 1, 0.5) if of_wrapped else None
    optimizer = mean_of(own)
    scheduler = scheduler or torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for value in (0.0, -0.5, -0.75):
        optimizer.step()
        scheduler.step()
        assert one.tolist() == [value] * 2
    assert optimizer.param_groups[0]["lr"] == 0.125


def test_an_imitation():
    """A program may make an object of a class that is derived from this one, and that hands everything on."""
    class Around:
        def __init__(self, optimizer):
            self._optimizer = optimizer
            self.__class__ = type("Around" + type(optimizer).__name__, (Around, type(optimizer)), {})
            self._strategy = "none"

        @property
        def optimizer(self):
            return self._optimizer

        def step(self, closure=None):
            return self._optimizer.step(closure)

        def __getattr__(self, name):
            return getattr(self._optimizer, name)

    first, second = ones(2), ones(3)
    optimizer = mean_of(torch.optim.SGD([first], lr=1.0))
    around = Around(optimizer)
    assert isinstance(around, torch.optim.Optimizer) and around._strategy == "none"
    assert not hasattr(optimizer.optimizer, "_strategy") and around.defaults is optimizer.optimizer.defaults
    around.add_param_group({"params": [second], "lr": 2.0})
    assert len(optimizer.optimizer.param_groups) == 2
    give_gradients(around)
    around.step()
    assert first.tolist() == [0, 0] and second.tolist() == [-1, -1, -1]
    around.load_state_dict(around.state_dict())
    around.zero_grad(set_to_none=True)
    around.param_groups = around.param_groups[:1]
    assert len(optimizer.optimizer.param_groups) == 1
    assert first.grad is None


def test_a_state_that_is_set():
    """As load_state_dict of torch.optim sets it."""
    one = ones(2)
    optimizer = mean_of(torch.optim.SGD([one], lr=1.0))
    optimizer.__setstate__({"param_groups": [{**optimizer.param_groups[0], "lr": 3.0}]})
    optimizer.step()
    assert one.tolist() == [-2, -2]


def test_state_dicts_of_distributed_checkpoints():
    """They take a step with a learning rate of zero, so that there is a state to load into."""
    state_dict = part_of_torch("distributed.checkpoint.state_dict")
    model, other = network(), network()
    optimizer, restored = (mean_of(torch.optim.Adam(one.parameters(), lr=0.1)) for one in (model, other))
    optimizer.step()
    restored.zero_grad(set_to_none=True)
    saved = copy.deepcopy(state_dict.get_state_dict(model, optimizer))
    state_dict.set_state_dict(other, restored, model_state_dict=saved[0], optim_state_dict=saved[1])
    assert all(map(torch.equal, model.parameters(), other.parameters())) and len(restored.state) == 4
    for one in (optimizer, restored):
        give_gradients(one)
        one.step()
    assert all(map(torch.equal, model.parameters(), other.parameters()))


@pytest.mark.parametrize("sharding", ["fully_shard", "tensor_parallel", "fsdp1", "fsdp1_original"])
def test_models_that_are_split(sharding):
    """They are not for this optimizer, which says for which function they are."""
    fsdp, parallel = part_of_torch("distributed.fsdp"), part_of_torch("distributed.tensor.parallel")
    model = network(width=12)  # which 1 to 4 processes can share
    mesh = part_of_torch("distributed.device_mesh").init_device_mesh("cpu", (world()[1],))
    if sharding == "fully_shard":
        fsdp.fully_shard(model, mesh=mesh)
    elif sharding == "tensor_parallel":
        parallel.parallelize_module(model, mesh, {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()})
    else:
        original = sharding == "fsdp1_original"
        model = fsdp.FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=original)
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters()))
    model(torch.ones(2, 10)).square().mean().backward()
    before = [getattr(one, "_local_tensor", one).detach().clone() for one in model.parameters()]
    with pytest.raises(adasum.BadInput, match=r"\['params'\]\[0\] is split over .* use adasum.torch.apply_to_fsdp"):
        optimizer.step()
    assert all(map(torch.equal, before, (getattr(one, "_local_tensor", one) for one in model.parameters())))
