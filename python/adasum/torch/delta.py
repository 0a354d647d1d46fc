# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers whose steps are combined in place of gradients."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from .._errors import BadInput
from ..report import Report
from .hooks import State


class DeltaOptimizer(torch.optim.Optimizer):
    """Wraps an optimizer of torch.optim. :meth:`step` first lets it change the parameters by this process's own gradients, and
    then replaces that change by the rule's combination of all processes' changes. So what is combined is the optimizer's steps
    (Adam, LAMB, momentum), not gradients, as in section 3.3 of the paper::

        optimizer = adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters(), lr=1e-3))
        loss.backward()      # of the model itself, not of DistributedDataParallel
        optimizer.step()

    All processes must begin with the same parameters, which the first step checks; they end each step with the same bits. Each
    process keeps its own state of the optimizer (its moments), and its own ``state_dict()``.

    It is itself an optimizer, for schedulers and scalers. Its ``param_groups``, ``state``, ``defaults`` and ``state_dict()``
    are those of the wrapped optimizer, and so are hooks of ``state_dict()`` and ``load_state_dict()`` and everything that is
    not listed here. Hooks of ``step()`` run around the combined step. It belongs to this process, and cannot be pickled or
    copied.

    Args:
        optimizer: The optimizer to wrap.
        process_group: As for :class:`State`; so are ``rule`` and ``options``, of which ``report_every`` and ``on_report`` are two.
        per_layer: Each parameter is a segment of its own. If False, all parameters of one type are one segment.
    """

    _step_supports_amp_scaling = False  # even if the wrapped one does: a scaler tells this one the scale, not that one

    def __init__(self, optimizer: torch.optim.Optimizer, process_group: torch.distributed.ProcessGroup | None = None,
                 rule: str = "adasum", *, per_layer: bool = True, **options: Any) -> None:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise BadInput("adasum.torch.DeltaOptimizer: the optimizer to wrap must be a torch.optim.Optimizer, not "
                           f"{type(optimizer).__name__}")
        # The hooks of a step are this optimizer's own. What else the base class makes is not kept: it is the wrapped one's.
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.optimizer = optimizer
        self._group, self._per_layer = process_group, per_layer
        self._state = State(process_group, rule, **options)
        self._changes: dict[torch.dtype, torch.Tensor] = {}

    def _parameters(self) -> dict[torch.dtype, list[torch.Tensor]]:
        """Those of each element type, in an order that all processes share."""
        of_type: dict[torch.dtype, list[torch.Tensor]] = {}
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad:
                    of_type.setdefault(parameter.dtype, []).append(parameter)
        return of_type

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Takes one combined step. Collective; blocks until it is done. If it raises an exception, it does so on all processes,
        and no parameter has changed; the wrapped optimizer's state may have changed."""
        of_type = self._parameters()
        if self._state.step == 0:
            _require_equal_parameters(of_type, self._group)
        before = {kind: [parameter.detach().clone() for parameter in parameters] for kind, parameters in of_type.items()}
        self._state.begin_step()
        try:
            try:
                loss = self.optimizer.step(closure)
            except BaseException as problem:
                for _ in of_type:
                    self._state._reducer.refuse(f"the wrapped optimizer raised {problem!r}")
                raise
            self._combine(of_type, before)
        except BaseException:
            for kind, parameters in of_type.items():
                for parameter, old in zip(parameters, before[kind]):
                    parameter.copy_(old)
            raise
        return loss

    def _combine(self, of_type: dict[torch.dtype, list[torch.Tensor]], before: dict[torch.dtype, list[torch.Tensor]]) -> None:
        """Replaces what the wrapped optimizer has changed since `before` by the combination of all processes' changes."""
        reductions = []
        for kind, parameters in of_type.items():
            lengths = [parameter.numel() for parameter in parameters]
            change = self._changes.get(kind)
            if change is None or change.numel() != sum(lengths):
                change = self._changes[kind] = torch.empty(sum(lengths), dtype=kind)
            parts = change.split(lengths)
            for part, parameter, old in zip(parts, parameters, before[kind]):
                torch.sub(parameter.reshape(-1), old.reshape(-1), out=part)
            future = self._state.reduce(change, lengths if self._per_layer else None)
            reductions.append((future, parts, parameters, before[kind]))
        for future, *_ in reductions:
            future.wait()
        for _, parts, parameters, olds in reductions:
            for part, parameter, old in zip(parts, parameters, olds):
                parameter.copy_(old.add_(part.view_as(old)))

    def reports(self) -> list[Report]:
        """What the last step found: a :class:`adasum.Report` for each element type."""
        return self._state.reports()

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, on this process."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """For the wrapped optimizer, on this process."""
        self.optimizer.load_state_dict(state_dict)

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        """The wrapped optimizer's."""
        self.optimizer.zero_grad(*arguments, **named)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """The next step has these parameters as well. To be called by all processes."""
        if self._is_ready:
            self.optimizer.add_param_group(param_group)

    @property
    def _is_ready(self) -> bool:
        """Whether there is a wrapped optimizer: not while the base class sets itself up."""
        return "optimizer" in self.__dict__

    def __getstate__(self) -> NoReturn:
        raise TypeError("adasum.torch.DeltaOptimizer belongs to this process: it cannot be pickled or copied; its "
                        "state_dict() can")

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer":
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    def __repr__(self) -> str:
        return f"adasum.torch.DeltaOptimizer({self.optimizer!r})"


def _require_equal_parameters(of_type: dict[torch.dtype, list[torch.Tensor]],
                              group: torch.distributed.ProcessGroup | None) -> None:
    """Collective. Raises BadInput on all processes."""
    checksum = 0
    for parameters in of_type.values():
        for parameter in parameters:
            checksum = zlib.crc32(parameter.detach().reshape(-1).view(torch.uint8).cpu().numpy(), checksum)
    sums = [torch.zeros(1, dtype=torch.int64) for _ in range(torch.distributed.get_world_size(group))]
    torch.distributed.all_gather(sums, torch.tensor([checksum]), group=group)
    for process, other in enumerate(sums):
        if other != sums[0]:
            raise BadInput(f"adasum.torch.DeltaOptimizer: process {process} and process 0 have different parameters; "
                           "begin with the same seed or checkpoint, or broadcast them")


def _attribute_of_wrapped(name: str) -> property:
    def write(self: DeltaOptimizer, value: Any) -> None:
        if self._is_ready:
            setattr(self.optimizer, name, value)

    return property(lambda self: getattr(self.optimizer, name), write)


def _method_of_wrapped(name: str) -> Callable[..., Any]:
    def call(self: DeltaOptimizer, *arguments: Any, **named: Any) -> Any:
        return getattr(self.optimizer, name)(*arguments, **named)

    return functools.wraps(getattr(torch.optim.Optimizer, name))(call)


for _name in ("param_groups", "state", "defaults"):
    setattr(DeltaOptimizer, _name, _attribute_of_wrapped(_name))
for _name in ("register_state_dict_pre_hook", "register_state_dict_post_hook", "register_load_state_dict_pre_hook",
              "register_load_state_dict_post_hook"):
    if hasattr(torch.optim.Optimizer, _name):  # PyTorch 2.x
        setattr(DeltaOptimizer, _name, _method_of_wrapped(_name))
