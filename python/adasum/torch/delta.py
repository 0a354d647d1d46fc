# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers whose steps are combined in place of gradients."""

from __future__ import annotations

import contextlib
import itertools
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import torch
import torch.distributed

from .._errors import BadInput, CommunicationError
from ..report import Report
from .hooks import State, host_group_of, require_group

_call = "adasum.torch.DeltaOptimizer"
_types = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class DeltaOptimizer(torch.optim.Optimizer):
    """Wraps an optimizer of torch.optim. :meth:`step` first lets it change the parameters by this process's own gradients, and
    then replaces that change by the rule's combination of all processes' changes. So what is combined is the optimizer's steps
    (Adam, LAMB, momentum), not gradients, as in section 3.3 of the paper::

        optimizer = adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters(), lr=1e-3))
        loss.backward()      # of the model itself, not of DistributedDataParallel
        optimizer.step()

    All processes must begin with the same parameters, which the first step checks; they end each step with the same bits. That
    holds for all parameters of the wrapped optimizer: a parameter that requires no gradient is combined, too, if the wrapped
    optimizer changes it on any process. Each process keeps its own state of the optimizer (its moments), and its own
    ``state_dict()``.

    It is itself an optimizer, for schedulers and scalers. Its ``param_groups``, ``state``, ``defaults`` and ``state_dict()``
    are those of the wrapped optimizer, and so are ``zero_grad()``, hooks of ``state_dict()`` and ``load_state_dict()`` and
    everything that is not listed here. Hooks of ``step()`` run around the combined step. It belongs to this process, and cannot
    be pickled or copied.

    Args:
        optimizer: The optimizer to wrap.
        process_group: As for :class:`State`; so are ``rule`` and ``options``, such as ``report_every`` and ``on_report``.
        per_layer: Each parameter is a segment of its own. If False, all parameters of one type and device are one segment.
    """

    _step_supports_amp_scaling = False  # even if the wrapped one does: a scaler tells this one the scale, not that one

    def __init__(self, optimizer: torch.optim.Optimizer, process_group: torch.distributed.ProcessGroup | None = None,
                 rule: str = "adasum", *, per_layer: bool = True, **options: Any) -> None:
        def check() -> list[int]:
            if not isinstance(optimizer, torch.optim.Optimizer):
                raise BadInput(f"{_call}: the optimizer to wrap must be a torch.optim.Optimizer, not {type(optimizer).__name__}")
            if isinstance(optimizer, DeltaOptimizer):
                raise BadInput(f"{_call}: the optimizer to wrap is a DeltaOptimizer already")
            if options.get("shard") is not None:
                raise BadInput(f"{_call}: shard is for State; parameters must be whole on each process")
            return []

        require_group(process_group)
        if torch.distributed.is_initialized():  # before the State, whose options come from the same call
            _on_all(process_group, 0, check)
        else:
            check()
        self._group = process_group
        self._state = State(process_group, rule, per_layer=per_layer, **options)
        self._changes: dict[tuple[torch.device, torch.dtype], torch.Tensor] = {}
        self._checked: list[torch.Tensor] = []  # parameters that were equal on all processes when it was last checked
        self.optimizer = optimizer
        # Makes the hooks of a step, which are this optimizer's own. What __init__ of the base class makes is the wrapped one's.
        super().__setstate__({})

    def step(self, closure: Any = None, *arguments: Any, **named: Any) -> Any:
        """Takes one combined step; the arguments are for the wrapped optimizer. Collective; blocks until it is done. If it
        raises an exception, it does so on all processes, and no parameter has changed; the wrapped optimizer's state may have
        changed. (If something interrupts this process alone while it waits for the others, as Ctrl-C does, that is raised when
        the step has been taken.)"""
        if closure is not None or arguments:
            arguments = (closure, *arguments)
        self._state._group()  # there must be one by now
        of_name = self._agreed_parameters()
        parameters = list(of_name.values())
        memory = [parameter.data for parameter in parameters]
        before: list[torch.Tensor] = []
        result = None

        def own_step() -> list[int]:
            nonlocal result
            before.extend(_numbers(one).clone() for one in memory)
            with _without_global_hooks():
                result = self.optimizer.step(*arguments, **named)
            for (name, one), old in zip(of_name.items(), memory):
                if _obstacle_of(one) or (one.shape, one.dtype) != (old.shape, old.dtype):
                    raise BadInput(f"{_call}: the wrapped optimizer has changed the shape, type or memory of {name}")
            return [one.requires_grad or not torch.equal(_bytes(one), old.view(torch.uint8))
                    for one, old in zip(parameters, before)]

        try:
            moved = _on_all(self._group, len(parameters), own_step).any(dim=0).tolist()
            interruption = self._combine({name: (one, old) for (name, one), old, is_moved in zip(of_name.items(), before, moved)
                                          if is_moved})
        except BaseException:
            for one, was, old in zip(parameters, memory, before):
                one.data = was  # the wrapped optimizer may have put other memory in its place
                _write(one, old)
            raise
        if interruption is not None:
            raise interruption
        return result

    def _combine(self, moved: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> BaseException | None:
        """Replaces what the wrapped optimizer has changed by the combination of all processes' changes.

        Args:
            moved: The parameters that have changed on any process, and their numbers before.

        Returns:
            What interrupted this process while it waited. The others have taken the step, and so has this one.
        """
        of_kind: dict[tuple[torch.device, torch.dtype], list[tuple[torch.Tensor, torch.Tensor]]] = {}
        for name, (parameter, old) in moved.items():
            if old.dtype not in _types:  # on all processes, as they have the same parameters
                raise BadInput(f"{_call}: the wrapped optimizer changes {name}, whose type, {parameter.dtype}, cannot be "
                               "combined")
            of_kind.setdefault((old.device, old.dtype), []).append((parameter, old))
        if not of_kind:
            return None
        self._state._begin_step(len(of_kind))
        try:
            changes = [(*self._change_of(kind, pairs), pairs) for kind, pairs in of_kind.items()]
        except BaseException as problem:
            self._refuse(len(of_kind), problem)
            raise
        reductions = [(self._state.reduce(change, [part.numel() for part in parts]), parts, pairs)
                      for change, parts, pairs in changes]
        interruption = None
        for future, *_ in reductions:  # all of them, even if one fails: the others still write
            try:
                future.wait()
            except BaseException as problem:  # one that comes from elsewhere is raised when the future is done
                interruption = problem
        for future, *_ in reductions:
            future.wait()
        for _, parts, pairs in reductions:
            for part, (parameter, old) in zip(parts, pairs):
                _write(parameter, part.add_(old))
        return interruption

    def _change_of(self, kind: tuple[torch.device, torch.dtype], pairs: list[tuple[torch.Tensor, torch.Tensor]]) \
            -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """What has changed in parameters of one device and type, one after another, and the part of each."""
        lengths = [old.numel() for _, old in pairs]
        change = self._changes.get(kind)
        if change is None or change.numel() != sum(lengths):
            change = self._changes[kind] = torch.empty(sum(lengths), device=kind[0], dtype=kind[1])
        parts = change.split(lengths)
        for part, (parameter, old) in zip(parts, pairs):
            torch.sub(_numbers(parameter), old, out=part)
        if not change.sum().isfinite():
            for part, (parameter, old) in zip(parts, pairs):
                part.masked_fill_(_numbers(parameter) == old, 0)  # an infinite number that is still the same has not moved
        return change, parts

    def _refuse(self, reductions: int, problem: BaseException) -> None:
        """Tells the other processes in place of the reductions that they are about to make."""
        for _ in range(reductions):
            self._state._reducer.refuse(f"this process raised {problem!r}")

    def _agreed_parameters(self) -> dict[str, torch.Tensor]:
        """The wrapped optimizer's parameters that can be combined, with names for messages, in an order that all processes
        share. Collective. Raises an exception on all processes if one has a parameter that cannot be combined, or if they have
        different parameters."""
        found: dict[str, torch.Tensor] = {}
        described: list[str] = []

        def describe() -> list[int]:
            found.update(_named_parameters(self.optimizer))
            described.extend(f"{name} of {one.dtype} and shape {tuple(one.shape)}{_place_of(one)}" for name, one in found.items())
            known = len(found) == len(self._checked) and all(map(lambda one, old: one is old, found.values(), self._checked))
            return [zlib.crc32(repr(described).encode()), not known]

        answers = _on_all(self._group, 2, describe)
        if (answers[:, 0] != answers[0, 0]).any():
            of_all = _exchange(self._group, described)
            differences = (f"process {process} has {one}, process 0 has {other}" for process, theirs in enumerate(of_all)
                           for one, other in itertools.zip_longest(theirs, of_all[0], fillvalue="no further parameter")
                           if one != other)
            raise BadInput(f"{_call}: {next(differences)}")
        if answers[:, 1].any():
            sums = _on_all(self._group, len(found), lambda: [zlib.crc32(_bytes(one).cpu().numpy()) for one in found.values()])
            for process, column in (sums != sums[0]).nonzero().tolist():
                raise BadInput(f"{_call}: process {process} and process 0 have different parameters, the first of them "
                               f"{described[column]}; begin with the same seed or checkpoint, or broadcast them")
        self._checked = list(found.values())
        return found

    def reports(self) -> list[Report]:
        """What the last step found: a :class:`adasum.Report` for each element type."""
        return self._state.reports()

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, on this process."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """For the wrapped optimizer, on this process. The next step checks that all processes have the same parameters."""
        self._checked = []
        self.optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """The next step has these parameters as well, and checks that all processes have the same ones. To be called by all
        processes."""
        self.optimizer.add_param_group(param_group)

    def __getstate__(self) -> NoReturn:
        raise TypeError(f"{_call} belongs to this process: it cannot be pickled or copied; its state_dict() can")

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer":
            raise AttributeError(name)
        value = getattr(self.optimizer, name)
        if callable(value):
            self._checked = []  # a method that is not step() may change parameters, too: the next step compares them
        return value

    def _is_of_wrapped(self, name: str) -> bool:
        own = vars(self)
        return not (name.startswith("_") or name in own or hasattr(type(self), name)) and hasattr(own.get("optimizer"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Of the wrapped optimizer, if that is where the attribute is read."""
        if self._is_of_wrapped(name):
            setattr(self.optimizer, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if self._is_of_wrapped(name):
            delattr(self.optimizer, name)
        else:
            super().__delattr__(name)

    def __repr__(self) -> str:
        return f"{_call}({self.optimizer!r})"


def _named_parameters(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
    """Each parameter once, without those that have no memory here that could be compared."""
    seen = set()
    for group_number, group in enumerate(optimizer.param_groups):
        for number, parameter in enumerate(group["params"]):
            name = f"param_groups[{group_number}]['params'][{number}]"
            obstacle = _obstacle_of(parameter)
            wrong = obstacle or ("" if _real_type_of(parameter) in _types else f"has the type {parameter.dtype}")
            if wrong and (parameter.requires_grad or parameter.grad is not None):
                raise BadInput(f"{_call}: {name} {wrong}; it cannot be combined")
            if not obstacle and id(parameter) not in seen:  # one without a gradient is left alone by optimizers
                seen.add(id(parameter))
                yield name, parameter


def _obstacle_of(parameter: torch.Tensor) -> str:
    """Why the parameter's elements are not this process's own memory; empty if they are."""
    if torch.nn.parameter.is_lazy(parameter):
        return "has no shape yet (call the model once before the first step)"
    of_fsdp1 = any(getattr(parameter, mark, False) for mark in ("_is_flat_param", "_fsdp_flattened"))
    if of_fsdp1 or hasattr(parameter, "device_mesh"):  # or a DTensor
        return ("is split over several processes (for a model that was given to fully_shard, use adasum.torch.apply_to_fsdp "
                "in place of DeltaOptimizer)")
    if type(parameter).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return f"is a {type(parameter).__name__}, not a plain tensor"
    if parameter.is_meta:
        return "is on meta, and so has no elements in memory"
    if parameter.layout != torch.strided or parameter.is_quantized or parameter.is_nested:
        return "is sparse, quantized or nested"
    if any(step == 0 and length > 1 for step, length in zip(parameter.stride(), parameter.shape)):
        return "has elements that share memory"
    return ""


def _place_of(parameter: torch.Tensor) -> str:
    return "" if parameter.device.type == "cpu" else f" on {parameter.device.type}"


def _real_type_of(tensor: torch.Tensor) -> torch.dtype:
    return tensor.real.dtype if tensor.is_complex() else tensor.dtype


def _numbers(tensor: torch.Tensor) -> torch.Tensor:
    """One after another, and two for each complex one: the tensor's own memory where that is possible."""
    tensor = tensor.detach().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.reshape(-1).contiguous()


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return _numbers(tensor).view(torch.uint8)


def _write(tensor: torch.Tensor, numbers: torch.Tensor) -> None:
    if tensor.is_complex():
        numbers = torch.view_as_complex(numbers.view(*tensor.shape, 2))
    tensor.detach().copy_(numbers.view(tensor.shape))


@contextlib.contextmanager
def _without_global_hooks() -> Iterator[None]:
    """Hooks for all optimizers run once, around the combined step, and not again around the wrapped optimizer's."""
    module = vars(sys.modules[torch.optim.Optimizer.__module__])
    held = {name: module[name] for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks") if name in module}
    module.update({name: {} for name in held})
    try:
        yield
    finally:
        module.update(held)


def _on_all(group: torch.distributed.ProcessGroup | None, count: int, work: Callable[[], list[int]]) -> torch.Tensor:
    """Collective. Calls `work` on each process, and returns what that returned, `count` numbers for each process. If it raises
    an exception on one process, all raise one."""
    try:
        mine = work()
    except BaseException as problem:
        _gather(group, [1] + [0] * count)
        _exchange(group, repr(problem))
        raise
    answers = _gather(group, [0, *mine])
    if answers[:, 0].any():
        problems = _exchange(group, "")
        process = next(number for number, problem in enumerate(problems) if problem)
        raise CommunicationError(f"{_call}: process {process} raised {problems[process]}")
    return answers[:, 1:]


def _gather(group: torch.distributed.ProcessGroup | None, numbers: Iterable[int]) -> torch.Tensor:
    """Collective. A row for each process."""
    mine = torch.tensor(list(numbers), device="cpu")
    rows = [torch.empty_like(mine) for _ in range(torch.distributed.get_world_size(group))]
    torch.distributed.all_gather(rows, mine, group=host_group_of(group))
    return torch.stack(rows)


def _exchange(group: torch.distributed.ProcessGroup | None, own: Any) -> list[Any]:
    """Collective. What each process has."""
    all_of_them = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(all_of_them, own, group=host_group_of(group))
    return all_of_them


def _attribute_of_wrapped(name: str) -> property:
    return property(lambda self: getattr(self.optimizer, name), lambda self, value: setattr(self.optimizer, name, value))


class _MethodOfWrapped:
    """A method that is the wrapped optimizer's own, with its parameters, at which some programs look."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return getattr(torch.optim.Optimizer if instance is None else instance.optimizer, self._name)


for _name in ("param_groups", "state", "defaults"):
    setattr(DeltaOptimizer, _name, _attribute_of_wrapped(_name))
for _name in ("zero_grad", "__setstate__", "register_state_dict_pre_hook", "register_state_dict_post_hook",
              "register_load_state_dict_pre_hook", "register_load_state_dict_post_hook"):
    if hasattr(torch.optim.Optimizer, _name):  # the hooks: PyTorch 2.x
        setattr(DeltaOptimizer, _name, _MethodOfWrapped(_name))
