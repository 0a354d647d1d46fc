# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adasum.torch.DeltaOptimizer where one process does something else than the others: all find out, none waits, and no parameter
changes. processes.py N python3 -m pytest test_delta_agreement.py"""

import pytest
import torch

import adasum.torch
from ranks import network, require_same_bits, world

pytestmark = pytest.mark.usefixtures("process_group")


def last():
    """Of several: one process alone agrees with itself."""
    return world()[1] > 1 and world()[0] == world()[1] - 1


def ones(*shape, value=1.0, **options):
    return torch.nn.Parameter(torch.full(shape, value, **options))


def sgd(*groups):
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD([{"params": group} for group in groups], lr=1.0), rule="mean")
    give_gradients(optimizer)
    return optimizer


def give_gradients(optimizer):
    for group in optimizer.param_groups:
        for one in group["params"]:
            one.grad = torch.ones_like(one)


def require_refused(optimizer, words):
    """On all processes, if there are several."""
    before = [one.detach().clone() for group in optimizer.param_groups for one in group["params"]]
    if world()[1] > 1:
        with pytest.raises(adasum.BadInput, match=words):
            optimizer.step()
        assert all(map(torch.equal, before, (one for group in optimizer.param_groups for one in group["params"])))


different = {
    "number": (lambda: [ones(2), ones(3), ones(4)], lambda: [ones(2), ones(3)],
               r"has no further parameter, process 0 has param_groups\[0\]\['params'\]\[2\]"),
    "shape": (lambda: [ones(2), ones(3, 4)], lambda: [ones(2), ones(4, 3)], r"shape \(4, 3\)( on \w+)?, process 0 has .* shape \(3, 4\)"),
    "type": (lambda: [ones(2)], lambda: [ones(2, dtype=torch.float64)], "float64 .*, process 0 has .*float32"),
    "order": (lambda: [ones(2), ones(3)], lambda: [ones(3), ones(2)], r"\['params'\]\[0\] .* shape \(3,\)( on \w+)?, process 0 has"),
    "value": (lambda: [ones(2), ones(3)], lambda: [ones(2), ones(3, value=2.0)], r"first of them .*\[1\]"),
    "frozen": (lambda: [ones(2), ones(3).requires_grad_(False)], lambda: [ones(2), ones(3, value=2.0).requires_grad_(False)],
               "different parameters")}


@pytest.mark.parametrize("what", different)
def test_parameters_that_differ(what):
    usual, other, words = different[what]
    optimizer = sgd(other() if last() else usual())
    require_refused(optimizer, words)
    if last():
        optimizer.param_groups[0]["params"] = usual()
        give_gradients(optimizer)
    optimizer.step()  # now that they are equal
    require_same_bits([one.detach() for one in optimizer.param_groups[0]["params"]])


def test_groups_that_differ():
    first, second = ones(2), ones(2)
    optimizer = sgd([first], [second]) if last() else sgd([first, second])
    require_refused(optimizer, r"param_groups\[1\]\['params'\]\[0\]")


@pytest.mark.parametrize("everywhere", [True, False])
def test_parameters_that_are_added(everywhere):
    """They are checked, also if one process adds none."""
    optimizer = sgd([ones(2)])
    optimizer.step()
    if everywhere or last():
        optimizer.add_param_group({"params": [ones(3, value=2.0 if last() else 1.0)]})
    give_gradients(optimizer)
    require_refused(optimizer, "different parameters, the first of them" if everywhere else "has no further parameter")


def test_a_parameter_in_place_of_another():
    optimizer = sgd([ones(2)])
    optimizer.step()
    if last():
        optimizer.param_groups[0]["params"][0] = ones(2, value=5.0)
    give_gradients(optimizer)
    require_refused(optimizer, "different parameters")


def test_a_checkpoint_of_one_process():
    """Which is loaded between two steps."""
    model = network()
    optimizer = sgd(list(model.parameters()))
    optimizer.step()
    if last():
        model.load_state_dict(network(seed=2).state_dict())
        optimizer.load_state_dict(optimizer.state_dict())
    require_refused(optimizer, "different parameters")


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_a_closure_that_raises(error):
    model = network()
    optimizer = adasum.torch.DeltaOptimizer(torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3))
    calls = []

    def closure():
        calls.append(len(calls))
        if len(calls) == 2 and world()[0] == world()[1] - 1:
            raise error("mine")
        optimizer.zero_grad()
        loss = model(torch.full((4, 10), 1.0 + world()[0])).square().mean()
        loss.backward()
        return loss

    before = [one.detach().clone() for one in model.parameters()]
    with pytest.raises(error if world()[0] == world()[1] - 1 else adasum.CommunicationError, match="mine"):
        optimizer.step(closure)
    assert all(map(torch.equal, before, model.parameters()))
    optimizer.load_state_dict({"state": {}, "param_groups": optimizer.state_dict()["param_groups"]})  # LBFGS stopped halfway
    loss = optimizer.step(closure)
    assert loss > 0 and not any(map(torch.equal, before, model.parameters()))
    require_same_bits([one.detach() for one in model.parameters()])


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_reports_that_cannot_be_taken(error, everywhere):
    """With parameters of several types, which are reduced one after another."""
    raises = everywhere or world()[0] == world()[1] - 1
    parameters = [ones(2), ones(2, dtype=torch.float64), ones(2, dtype=torch.float16)]

    def show(step, reports):
        if step == 2 and raises:
            raise error("mine")

    own = torch.optim.SGD(parameters, lr=0.5)
    optimizer = adasum.torch.DeltaOptimizer(own, rule="mean", report_every=1, on_report=show)
    for step in range(4):
        give_gradients(optimizer)
        before = [one.detach().clone() for one in parameters]
        if step == 2:
            with pytest.raises(error if raises else adasum.CommunicationError):
                optimizer.step()
        else:
            optimizer.step()
        assert all(map(torch.equal, parameters, before if step == 2 else [old - 0.5 for old in before]))


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_failure_before_the_changes_are_sent(monkeypatch, error):
    """On the last process; with parameters of two types, of which the second one's change cannot be computed."""
    parameters = [ones(2), ones(2, dtype=torch.float64)]
    optimizer = sgd(parameters)
    subtract, fails = torch.sub, world()[0] == world()[1] - 1

    def subtract_floats(first, *others, **named):
        if fails and first.dtype == torch.float64:
            raise error("mine")
        return subtract(first, *others, **named)

    for step in range(3):
        give_gradients(optimizer)
        before = [one.detach().clone() for one in parameters]
        if step == 1:
            with monkeypatch.context() as patch, pytest.raises(error if fails else adasum.CommunicationError):
                patch.setattr(torch, "sub", subtract_floats)
                optimizer.step()
            assert all(map(torch.equal, parameters, before))
        else:
            optimizer.step()
            assert not any(map(torch.equal, parameters, before))
        require_same_bits([one.detach() for one in parameters])


def test_an_interruption_while_it_waits():
    """The others take the step, and so does this process."""
    optimizer = sgd([ones(2), ones(2, dtype=torch.float64)])
    reduce = optimizer._state.reduce

    class Interrupted:
        def __init__(self, *arguments):
            self._future, self._is_first = reduce(*arguments), True

        def wait(self):
            self._future.wait()
            if self._is_first:
                self._is_first = False
                raise KeyboardInterrupt

    if world()[0] == world()[1] - 1:
        optimizer._state.reduce = Interrupted
        with pytest.raises(KeyboardInterrupt):
            optimizer.step()
    else:
        optimizer.step()
    assert all((one == 0).all() for one in optimizer.param_groups[0]["params"])


def test_a_method_that_changes_parameters():
    """One that is not step(), such as that by which a schedule-free optimizer prepares for evaluation: the next step notices."""
    class ScheduleFree(torch.optim.SGD):
        def eval(self):
            with torch.no_grad():
                self.param_groups[0]["params"][0].add_(world()[0])

    optimizer = adasum.torch.DeltaOptimizer(ScheduleFree([ones(2)], lr=1.0))
    give_gradients(optimizer)
    optimizer.step()
    optimizer.eval()
    require_refused(optimizer, "different parameters")


def test_a_group_of_some_processes():
    """Also where one of them raises."""
    rank, size = world()
    count = max(1, size - 1)
    group = torch.distributed.new_group(list(range(count)))
    if rank < count:
        model = network()
        optimizer = adasum.torch.DeltaOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), group)
        give_gradients(optimizer)
        optimizer.step()

        def closure():
            if rank == count - 1:
                raise KeyError("mine")

        with pytest.raises(KeyError if rank == count - 1 else adasum.CommunicationError, match="mine"):
            optimizer.step(closure)
    torch.distributed.barrier()


def test_one_process_that_has_no_optimizer():
    given = [ones(2)] if last() else torch.optim.SGD([ones(2)], lr=1.0)
    if world()[1] > 1:
        with pytest.raises(adasum.BadInput if last() else adasum.CommunicationError, match="must be a .*Optimizer, not list"):
            adasum.torch.DeltaOptimizer(given)
