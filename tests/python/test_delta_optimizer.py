# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adasum.torch.DeltaOptimizer among processes: processes.py N python3 -m pytest test_delta_optimizer.py"""

import copy
import io
import pickle

import pytest
import torch

import adasum.torch
from ranks import batch_of, combined, network, require_close, require_same_bits, world

pytestmark = pytest.mark.usefixtures("process_group")


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
    with pytest.raises(adasum.BadInput, match="must be a torch.optim.Optimizer, not list"):
        adasum.torch.DeltaOptimizer([first])
    with pytest.raises(adasum.BadInput, match="a DeltaOptimizer already"):
        adasum.torch.DeltaOptimizer(optimizer)
    for wrong in ({"shard": (0, 0)}, {"per_layer": 1}):
        with pytest.raises(adasum.BadInput, match=next(iter(wrong))):
            adasum.torch.DeltaOptimizer(optimizer.optimizer, **wrong)


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
        with pytest.raises(adasum.BadInput, match=f"process {size - 1} and process 0 have different parameters"):
            optimizer.step()
