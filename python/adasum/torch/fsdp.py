# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FSDP2: replicas of a model whose parameters fully_shard has split over several processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed

from .._errors import BadInput, Error
from ..report import Report
from .hooks import State

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

_call = "adasum.torch.apply_to_fsdp"


def apply_to_fsdp(model: torch.nn.Module, mesh: DeviceMesh, rule: str = "adasum", *, per_layer: bool = True,
                  report_every: int = 0, on_report: Callable[[int, list[Report]], object] | None = None,
                  **options: Any) -> State:
    """Makes the backward pass of a model that was given to fully_shard combine the gradients of its replicas::

        mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard"))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["shard"])
        fully_shard(model, mesh=mesh["shard"])   # one dimension of the mesh: with both, PyTorch averages over replicas itself
        adasum.torch.apply_to_fsdp(model, mesh)

    Within a replica, PyTorch averages gradients over its processes as usual, and gives each process a part of the average.
    Then each process combines its part with the same part of the other replicas. The weights are those of the whole gradients,
    because inner products are added over the parts. All replicas must begin with equal parameters, and keep them equal.
    Collective over the mesh.

    Args:
        model: The model.
        mesh: A mesh of two dimensions: replicas, and the processes over which each replica is sharded.
        rule: As for :class:`State`; so are ``report_every``, ``on_report`` and ``options``. There is a report for each module
            that was given to fully_shard.
        per_layer: Whether each parameter gets its own weights. Weights for the whole model (False, or a rule that allows
            nothing else) need all gradients at once, so fully_shard must then have been called for the model as one module.

    Returns:
        A :class:`State`, for its reports.

    Raises:
        BadInput: The model or the mesh does not meet these conditions.
        Error: PyTorch has no ``FSDPModule.set_all_reduce_hook`` (PyTorch 2.7 and later have it).
    """
    # Whatever may be wrong is found before processes meet.
    module_class = _module_class()
    replica, part = _place_in(mesh)
    modules = _modules_of(model, module_class)
    for module in modules:
        module.require_sharded_over(mesh.mesh[replica].tolist())
    ranks = mesh.mesh.flatten().tolist()
    if len(ranks) == torch.distributed.get_world_size():
        group = None
    else:
        group = torch.distributed.new_group(ranks, use_local_synchronization=True)
    state = State(group, rule, per_layer=per_layer, report_every=report_every, on_report=on_report, shard=(replica, part),
                  **options)
    if state._whole_model and len(modules) > 1:
        what = f"the rule {rule!r} has" if per_layer else "per_layer=False asks for"
        raise BadInput(f"{_call}: {what} one set of weights for the whole model, but its gradients come module by module: "
                       f"fully_shard was called for {len(modules)} modules. Call it for the model alone, or choose a rule that "
                       "works layer by layer, such as 'adasum'")
    steps = _Steps(state)
    for module in modules:
        module.set_hook(_Hook(state, steps, module))
    return state


def _module_class() -> Any:
    try:
        from torch.distributed.fsdp import FSDPModule
    except Exception:  # not only ImportError: importing that of Debian 12 fails under its own Python
        FSDPModule = None
    if not hasattr(FSDPModule, "set_all_reduce_hook"):
        raise Error(f"{_call}: PyTorch {torch.__version__} has no FSDPModule.set_all_reduce_hook; use PyTorch 2.7 or later")
    return FSDPModule


def _place_in(mesh: DeviceMesh) -> tuple[int, int]:
    """Which replica this process belongs to, and which part of it this process has."""
    from torch.distributed.device_mesh import DeviceMesh

    if not isinstance(mesh, DeviceMesh):
        raise BadInput(f"{_call}: the mesh must be a DeviceMesh, not {type(mesh).__name__}")
    if mesh.ndim != 2:
        raise BadInput(f"{_call}: the mesh has {mesh.ndim} dimension(s); it needs two: the replicas, and the parts of "
                       "each")
    place = mesh.get_coordinate()
    if place is None:
        raise BadInput(f"{_call}: process {torch.distributed.get_rank()} is not in the mesh; give a mesh that contains it")
    return place[0], place[1]


class _Module:
    """Parameters whose gradients are reduced at once: those of a module that was given to fully_shard, without those of the
    modules in it that were given to fully_shard as well. What PyTorch does not make public is read here, and nowhere else."""

    def __init__(self, name: str, module: Any, group: Any) -> None:
        self.name, self._module, self._group = name, module, group

    def require_sharded_over(self, ranks: list[int]) -> None:
        for parameter in self._group.fsdp_params:
            mesh = parameter.sharded_param.device_mesh
            if mesh.ndim == 1 and mesh.mesh.tolist() == ranks:
                continue
            if self._group._is_hsdp:
                why = ("fully_shard got both dimensions of the mesh, so PyTorch averages over the replicas itself: give it the "
                       "second one alone, such as mesh['shard']")
            else:
                why = f"it is sharded over the processes {mesh.mesh.tolist()}, but the mesh says {ranks}"
            raise BadInput(f"{_call}: module {self.name!r}: {why}")

    def set_hook(self, hook: Callable[[torch.Tensor], None]) -> None:
        self._module.set_all_reduce_hook(hook)

    def lengths(self) -> list[int]:
        """The lengths of the parts of those parameters that get gradients, with padding, in the order in which they lie in the
        hook's tensor."""
        parameters = self._group.fsdp_params
        order = getattr(self._group, "_reduce_scatter_param_indices", range(len(parameters)))
        return [parameters[i].padded_sharded_param_size.numel() for i in order if parameters[i].sharded_param.requires_grad]


def _modules_of(model: torch.nn.Module, module_class: Any) -> list[_Module]:
    if not isinstance(model, torch.nn.Module):
        raise BadInput(f"{_call}: the model must be a torch.nn.Module, not {type(model).__name__}")
    found: dict[int, _Module] = {}
    for name, module in model.named_modules():
        if not isinstance(module, module_class):
            continue
        state = module._get_fsdp_state()
        groups = state._fsdp_param_groups if hasattr(state, "_fsdp_param_groups") else [state._fsdp_param_group]
        if len(groups) > 1:
            raise BadInput(f"{_call}: module {name!r}: its parameters are sharded over several meshes; they must share one")
        for group in groups:
            if group is not None and group.fsdp_params:
                found.setdefault(id(group), _Module(name, module, group))
    if not found:
        raise BadInput(f"{_call}: the model has no sharded parameters; call fully_shard first")
    return list(found.values())


class _Steps:
    """Tells a state when a step begins: with the first module, and with one whose gradients come again."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._seen: set[str] = set()

    def note(self, name: str) -> None:
        if not self._seen or name in self._seen:
            self._seen.clear()
            self._state.begin_step()
        self._seen.add(name)


class _Hook:
    """What PyTorch calls with this process's part of a module's gradients."""

    def __init__(self, state: State, steps: _Steps, module: _Module) -> None:
        self._state, self._steps, self._module = state, steps, module

    def __call__(self, gradients: torch.Tensor) -> None:
        self._steps.note(self._module.name)
        lengths = self._module.lengths()
        missing = gradients.numel() != sum(lengths)
        try:
            self._state.reduce(gradients, lengths).wait()  # which tells the others if lengths do not add up
        except Error as problem:
            if not missing:
                raise
            raise BadInput(f"adasum.torch: module {self._module.name!r}: some of its parameters that require gradients have "
                           "none. Call the module's set_reduce_scatter_unused_params(True), if this PyTorch has it, or "
                           "use all parameters") from problem
