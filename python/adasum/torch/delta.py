# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers whose steps are combined in place of gradients."""

from __future__ import annotations

from typing import Any

import torch

from ..report import Report
from .hooks import State


class DeltaOptimizer:
    """Wraps an optimizer of torch.optim. step() lets it change the parameters by this process's own gradients, and then
    replaces the change by the rule's combination of all processes' changes: what is combined is what the optimizer has
    made of gradients (Adam, LAMB, momentum), as section 3.3 of the paper does for these.

        optimizer = adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters(), lr=1e-3))
        loss.backward()      # of the model itself, not of DistributedDataParallel
        optimizer.step()

    All processes begin with the same parameters and end each step with the same bits. Parameters are segments of their own,
    or, with per_layer=False, all of one type are one segment. State and options as for State. The optimizer's own state (its
    moments) stays each process's own, and so does state_dict().

    Attributes and methods that are not listed here are the wrapped optimizer's."""

    def __init__(self, optimizer: torch.optim.Optimizer, process_group: torch.distributed.ProcessGroup | None = None,
                 rule: str = "adasum", *, per_layer: bool = True, **options: Any) -> None:
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

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer":
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    def __repr__(self) -> str:
        return f"adasum.torch.DeltaOptimizer({self.optimizer!r})"
