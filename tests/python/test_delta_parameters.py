# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which parameters adasum.torch.DeltaOptimizer combines: after a step all are equal among processes, after an error all are as
they were. processes.py N python3 -m pytest test_delta_parameters.py"""

import pytest
import torch

import adasum.torch
from ranks import batch_of, combined, network, require_close, require_same_bits, world

pytestmark = pytest.mark.usefixtures("process_group")
makes = {"adam": lambda p: torch.optim.Adam(p, lr=0.1), "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1),
         "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)}


def last():
    return world()[0] == world()[1] - 1


def backward_of(model, step):
    x, y = batch_of(world()[0], step)
    torch.nn.functional.mse_loss(model(x), y).backward()


def copies_of(parameters):
    return [one.detach().clone() for one in parameters]


def require_unchanged(parameters, before):
    assert all(torch.equal(one, old) for one, old in zip(parameters, before))


class Noise(torch.optim.SGD):
    """Moves all parameters by something else on each process, whether or not they have a gradient."""

    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for one in group["params"]:
                    one.add_(1 + world()[0])


@pytest.mark.parametrize("how", ["everywhere", "on_one", "after_backward"])
@pytest.mark.parametrize("make", makes.values(), ids=makes)
def test_frozen_parameters_that_move(make, how):
    model = network()
    optimizer = adasum.torch.DeltaOptimizer(make(model.parameters()))
    for step in range(5):
        if step == 2 and how != "after_backward":
            model[0].requires_grad_(how == "on_one" and not last())
        before = copies_of(model.parameters())
        optimizer.zero_grad(set_to_none=False)
        backward_of(model, step)
        if step == 2 and how == "after_backward":
            model[0].requires_grad_(False)
        optimizer.step()
        assert not any(map(torch.equal, model.parameters(), before))
        require_same_bits(copies_of(model.parameters()))


@pytest.mark.parametrize("per_layer", [True, False])
def test_frozen_parameters_that_do_not_move(per_layer):
    """The others become what they become if the optimizer does not have these."""
    models = [network() for _ in range(2)]
    for model in models:
        model[0].bias.requires_grad_(False)
    trained = [one for one in models[1].parameters() if one.requires_grad]
    optimizers = [adasum.torch.DeltaOptimizer(torch.optim.SGD(parameters, lr=0.1), per_layer=per_layer)
                  for parameters in (models[0].parameters(), trained)]
    for step in range(2):
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            backward_of(model, step)
            optimizer.step()
        require_unchanged(models[0].parameters(), copies_of(models[1].parameters()))
    assert optimizers[0].reports()[0]["weights"] == optimizers[1].reports()[0]["weights"]


@pytest.mark.parametrize("policy", ["propagate", "raise", "exclude"])
def test_parameters_that_hold_infinities(policy):
    """A change of zero is zero there, too."""
    mask, partly = torch.nn.Parameter(torch.tensor([0.0, -torch.inf])), torch.nn.Parameter(torch.tensor([1.0, torch.inf]))
    own = torch.optim.SGD([mask, partly], lr=1.0, momentum=0.9)
    optimizer = adasum.torch.DeltaOptimizer(own, nonfinite=policy, rule="mean")
    for step in range(2):
        for one in (mask, partly):
            one.grad = torch.tensor([-1.0, 0.0])
        mask.requires_grad_(last() or step == 0)
        before = copies_of((mask, partly))
        optimizer.step()
        change = 1.0 if step == 0 else 1.9
        require_close([mask.detach(), partly.detach()], [old + torch.tensor([change, 0]) for old in before])


def test_a_frozen_parameter_that_one_process_spoils():
    """Which is left out, also where the others have the change of a moment."""
    model = network()
    optimizer = adasum.torch.DeltaOptimizer(makes["momentum"](model.parameters()), nonfinite="exclude")
    for step in range(2):
        optimizer.zero_grad(set_to_none=False)
        backward_of(model, step)
        if step == 1:
            model[0].requires_grad_(False)
            model[0].weight.grad.fill_(torch.nan if last() else 1.0)
        before = copies_of(model.parameters())
        optimizer.step()
        moved = [not torch.equal(one, old) for one, old in zip(model.parameters(), before)]
        assert all(moved) if step == 0 or world()[1] > 1 else not any(moved)
        assert all(one.isfinite().all() for one in model.parameters())
        require_same_bits(copies_of(model.parameters()))


def test_sparse_gradients():
    """Of parameters that are not sparse themselves."""
    embedding = torch.nn.Embedding(6, 3, sparse=True)
    torch.nn.init.ones_(embedding.weight)
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SparseAdam(list(embedding.parameters()), lr=0.1))
    embedding(torch.tensor([world()[0], 5])).sum().backward()
    optimizer.step()
    moved = (embedding.weight != 1).all(dim=1).tolist()
    assert moved == [row < world()[1] or row == 5 for row in range(6)]
    require_same_bits([embedding.weight.detach()])


@pytest.mark.parametrize("wrong", ["nan", "raises", "interrupted"])
def test_after_an_error(wrong):
    """Parameters of all kinds, wherever the wrapped optimizer has put their elements, are as they were."""
    parameters = [torch.nn.Parameter(one) for one in (torch.ones(3), torch.ones(2, dtype=torch.complex64), torch.ones(()),
                                                      torch.ones(2, 3, dtype=torch.float64).t(), torch.ones(0))]
    parameters += [torch.nn.Parameter(torch.ones(3, dtype=kind), requires_grad=False) for kind in (torch.float32, torch.int64)]

    class Spoiling(Noise):
        def step(self, closure=None):
            super().step()
            if not last():
                return
            parameters[0].data = torch.full((3,), torch.nan)
            if wrong != "nan":
                parameters[5].data = torch.ones(7)
                raise KeyError("mine") if wrong == "raises" else KeyboardInterrupt

    if wrong == "nan":
        parameters.pop()  # that of integers, which cannot be combined
    optimizer = adasum.torch.DeltaOptimizer(Spoiling([{"params": parameters[:4]}, {"params": parameters[4:]}], lr=1.0),
                                            nonfinite="raise")
    before, memory = copies_of(parameters), [one.data_ptr() for one in parameters]
    mine = {"nan": adasum.NonfiniteError, "raises": KeyError, "interrupted": KeyboardInterrupt}[wrong]
    with pytest.raises(mine if last() or wrong == "nan" else adasum.CommunicationError):
        optimizer.step()
    require_unchanged(parameters, before)
    assert [one.data_ptr() for one in parameters] == memory


@pytest.mark.parametrize("other", [torch.ones(1).expand(3), torch.ones(2), torch.ones(3, dtype=torch.float64)])
def test_other_memory(other):
    """In which an optimizer may put a parameter; but the other processes' steps must fit there."""
    class Moving(Noise):
        def step(self, closure=None):
            super().step()
            if last():
                parameter.data = other

    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = adasum.torch.DeltaOptimizer(Moving([parameter], lr=1.0), rule="mean")
    with pytest.raises(adasum.BadInput if last() else adasum.CommunicationError, match="shape, type or memory of param_groups"):
        optimizer.step()
    require_unchanged([parameter], [torch.zeros(3)])
    other = torch.ones(4)[1:]
    optimizer.step()
    require_close([parameter.detach()], [torch.full((3,), world()[1] * (world()[1] - 1) / 2 + 1) / world()[1]])
    require_same_bits([parameter.detach()])


def test_a_parameter_that_has_a_gradient_on_one_process_only():
    rank, size = world()
    parameters = [torch.nn.Parameter(torch.ones(4)) for _ in range(3)]
    parameters[2].requires_grad_(False)
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD(parameters, lr=1.0, weight_decay=0.5), rule="mean")
    for step in range(2):
        for one in parameters[1 - step:]:
            one.grad = torch.ones(4) if last() else None
        before = copies_of(parameters)
        optimizer.step()
        moved = [old - (1 + 0.5 * old) / size if k >= 1 - step else old for k, old in enumerate(before)]
        require_close(copies_of(parameters), moved)
        require_same_bits(copies_of(parameters))


def test_an_optimizer_that_moves_parameters_without_a_gradient():
    size = world()[1]
    parameters = [torch.nn.Parameter(torch.zeros(3), requires_grad=k < 1) for k in range(3)]
    optimizer = adasum.torch.DeltaOptimizer(Noise(parameters, lr=1.0), rule="mean")
    optimizer.step()
    require_close(copies_of(parameters), [torch.full((3,), (size + 1) / 2)] * 3)
    require_same_bits(copies_of(parameters))


kinds = {
    "scalar": lambda: torch.tensor(2.0), "empty": lambda: torch.ones(2, 0), "transposed": lambda: torch.rand(4, 3).t(),
    "channels_last": lambda: torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last), "gaps": lambda: torch.rand(9)[::2],
    "complex": lambda: torch.rand(3, 2, dtype=torch.complex64), "complex128": lambda: torch.rand(3, dtype=torch.complex128),
    "complex_empty": lambda: torch.ones(0, dtype=torch.complex64), "complex_scalar": lambda: torch.tensor(1 + 2j),
    "conjugate": lambda: torch.rand(3, 2, dtype=torch.complex64).conj(),
    "negative": lambda: torch.rand(3, dtype=torch.complex64).conj().imag, "double": lambda: torch.rand(3, dtype=torch.float64),
    "half": lambda: torch.rand(3).half(), "bfloat16": lambda: torch.rand(3).bfloat16()}


@pytest.mark.parametrize("per_layer", [True, False])
@pytest.mark.parametrize("kind", kinds)
def test_kinds_of_parameters(kind, per_layer):
    """As the calls on one process combine their numbers; a complex number is two."""
    torch.manual_seed(3)
    one, beside = torch.nn.Parameter(kinds[kind]()), torch.nn.Parameter(torch.rand(2).to(kinds[kind]().real.dtype))
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD([one, beside], lr=1.0), per_layer=per_layer)
    before = copies_of((one, beside))

    def numbers(tensor):
        tensor = tensor.resolve_conj().resolve_neg()
        return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).reshape(-1)

    changes = []
    for rank in range(world()[1]):
        torch.manual_seed(rank)
        gradients = [torch.rand_like(old) for old in before]
        if rank == world()[0]:
            one.grad, beside.grad = gradients
        changes.append([numbers(old - gradient) - numbers(old) for old, gradient in zip(before, gradients)])
    optimizer.step()
    tolerance = {"half": 4e-3, "bfloat16": 3e-2}.get(kind, 1e-5)  # a few roundings of numbers below 3
    for parameter, old, change in zip((one, beside), before, combined(changes, per_layer=per_layer)):
        torch.testing.assert_close(numbers(parameter.detach()), numbers(old) + change, rtol=0, atol=tolerance)
    require_same_bits([numbers(parameter.detach()).double() for parameter in (one, beside)])


@pytest.mark.filterwarnings("ignore:optimizer contains a parameter group with duplicate parameters")
def test_a_parameter_that_appears_twice():
    """It counts once where all parameters have one set of weights."""
    changed = []
    for twice in (False, True):
        one, other = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
        own = torch.optim.SGD([one, other, one] if twice else [one, other], lr=1.0)
        optimizer = adasum.torch.DeltaOptimizer(own, per_layer=False)
        torch.manual_seed(world()[0])
        one.grad, other.grad = torch.rand(4) / (2 if twice else 1), torch.rand(4)  # SGD then takes the step twice
        optimizer.step()
        changed.append(copies_of((one, other)))
    require_close(*changed)


class Wrapper(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError("nobody may call this")


unusable = {"meta": lambda: torch.nn.Parameter(torch.ones(3, device="meta")), "lazy": torch.nn.UninitializedParameter,
            "sparse": lambda: torch.nn.Parameter(torch.eye(3).to_sparse()),
            "shares memory": lambda: torch.nn.Parameter(torch.ones(1).expand(3)),
            "int64": lambda: torch.ones(3, dtype=torch.int64),
            "Wrapper": lambda: torch.Tensor._make_subclass(Wrapper, torch.ones(3), True)}
words = {"lazy": "has no shape yet", "shares memory": "share memory", "meta": "is on meta", "sparse": "is sparse",
         "int64": "type torch.int64", "Wrapper": "is a Wrapper"}


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("kind", unusable)
def test_parameters_that_cannot_be_combined(kind, everywhere):
    """All processes raise an error that names it, before the wrapped optimizer takes its step."""
    def step(closure=None):
        raise AssertionError("it must not be called")

    bad = unusable[kind]() if everywhere or last() else torch.nn.Parameter(torch.ones(3))
    if kind == "int64" and bad.dtype == torch.int64:
        bad.grad = torch.ones(3, dtype=torch.int64)
    good = torch.nn.Parameter(torch.ones(3))
    own = torch.optim.SGD([{"params": [good]}, {"params": [bad]}], lr=1.0)
    own.step = step
    optimizer = adasum.torch.DeltaOptimizer(own)
    is_bad = everywhere or last()
    with pytest.raises(adasum.BadInput if is_bad else adasum.CommunicationError, match=words[kind]) as raised:
        optimizer.step()
    assert "param_groups[1]['params'][0]" in str(raised.value)


def test_parameters_that_cannot_be_combined_and_stay_as_they_are():
    """Frozen ones that have no gradient, such as quantized weights. If the optimizer moves one all the same, it is an error."""
    good = torch.nn.Parameter(torch.ones(3))
    stay = [torch.nn.Parameter(torch.ones(3, dtype=torch.int8), requires_grad=False),
            torch.nn.Parameter(torch.ones(3, device="meta"), requires_grad=False),
            torch.nn.Parameter(torch.eye(3).to_sparse(), requires_grad=False),
            torch.nn.Parameter(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), requires_grad=False)]
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD([good, *stay], lr=1.0))
    good.grad = torch.ones(3)
    optimizer.step()
    require_close([good.detach()], [torch.zeros(3)])
    own = Noise([good, stay[0]], lr=1.0)
    if not last():
        own.step = lambda: None
    optimizer = adasum.torch.DeltaOptimizer(own)
    with pytest.raises(adasum.BadInput, match=r"changes param_groups\[0\]\['params'\]\[1\], whose type, torch.int8"):
        optimizer.step()
    require_unchanged([good, stay[0]], [torch.zeros(3), torch.ones(3, dtype=torch.int8)])
