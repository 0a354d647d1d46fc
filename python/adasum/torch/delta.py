# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers whose steps are combined in place of gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from .._errors import BadInput
from ..report import Report
from .hooks import State


class DeltaOptimizer(torch.optim.Optimizer):
    """Wraps an optimizer of torch.optim. step() lets it change the parameters by this process's own gradients, and then
    replaces the change by the rule's combination of all processes' changes: what is combined is what the optimizer has
    made of gradients (Adam, LAMB, momentum), as section 3.3 of the paper does for these.

        optimizer = adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters(), lr=1e-3))
        loss.backward()      # of the model itself, not of DistributedDataParallel
        optimizer.step()

    All processes begin with the same parameters and end each step with the same bits. Parameters are segments of their own,
    or, with per_layer=False, all of one type are one segment. State and options as for State. The optimizer's own state (its
    moments) stays each process's own, and so does state_dict().

    It is an optimizer itself, for schedulers and scalers: its param_groups, state, defaults and state_dict() are those of the
    wrapped one, as are hooks of state_dict() and load_state_dict(), and all that is not listed here. Hooks of step() run around
    the combined step. It belongs to this process, and cannot be pickled or copied."""

    _step_supports_amp_scaling = False  # even if the wrapped one does: a scaler tells this one the scale, not that one

    def __init__(self, optimizer: torch.optim.Optimizer, process_group: torch.distributed.ProcessGroup | None = None,
                 rule: str = "adasum", *, per_layer: bool = True, **options: Any) -> None:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise BadInput("adasum.torch.DeltaOptimizer: this wraps an optimizer of torch.optim, which is no "
                           f"{type(optimizer).__name__}")
        # The hooks of a step are this optimizer's own. What else the base class makes is not kept: it is the wrapped one's.
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.optimizer = optimizer
        self._per_layer = per_layer
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
        """One step of the optimizer, combined. Collective; blocks until it is done."""
        of_type = self._parameters()
        before = {kind: [parameter.detach().clone() for parameter in parameters] for kind, parameters in of_type.items()}
        loss = self.optimizer.step(closure)
        self._state.begin_step()
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
        for future, parts, parameters, olds in reductions:
            future.wait()
            for part, parameter, old in zip(parts, parameters, olds):
                parameter.copy_(old.add_(part.view_as(old)))
        return loss

    def reports(self) -> list[Report]:
        """What the last step found: a Report for each element type."""
        return self._state.reports()

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state_dict)

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
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
