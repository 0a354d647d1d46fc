# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A communication hook for DistributedDataParallel."""

import atexit
import collections
import datetime
import inspect
import operator
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Optional

import torch
import torch.distributed

from .._arrays import problem_of_tensor_class
from .._errors import BadInput
from .._library import name_of, text_of
from ..report import Report

try:
    from .._torch import Reducer, Worker, abandon_all, require_settings
except ImportError as problem:
    raise ImportError("adasum.torch: this package was built without PyTorch, or for another version of it; compile it "
                      "where this PyTorch is installed, by `pip install .` in its sources (docs/pytorch.md)") from problem

atexit.register(abandon_all)  # a rank may be waiting for others that do not come, and must not keep this process from ending

_workers: weakref.WeakKeyDictionary[torch.distributed.ProcessGroup, Worker] = weakref.WeakKeyDictionary()
"""The thread of each group. It lives as long as the group, so that all ranks make it with the first State."""


def _worker_of(group: torch.distributed.ProcessGroup) -> Worker:
    if group not in _workers:
        # Not the group itself: backends for devices have no tags, and want all calls in one order, which those of a program, or
        # of DistributedDataParallel, and those of a thread beside it have not.
        for_devices = _group_beside(group, torch.distributed.get_backend_config(group)) if _sends_from_devices(group) else None
        _workers[group] = Worker(host_group_of(group), _timeout_of(group), for_devices)
    return _workers[group]


def _timeout_of(group: torch.distributed.ProcessGroup) -> float:
    """In seconds; as init_process_group was told, where the backend says so."""
    try:
        backend = group._get_backend(_device_types(group)[0]) if hasattr(group, "_get_backend") else group
        return backend.options._timeout.total_seconds()
    except (AttributeError, RuntimeError):
        return 1800.0  # PyTorch's own default


_host_groups: weakref.WeakKeyDictionary[torch.distributed.ProcessGroup, torch.distributed.ProcessGroup] = (
    weakref.WeakKeyDictionary())


def host_group_of(group: Optional[torch.distributed.ProcessGroup]) -> torch.distributed.ProcessGroup:
    """A group of the same processes that sends tensors of the CPU: this one (if None, the default one), if it does. Collective
    at first."""
    group = group or torch.distributed.distributed_c10d._get_default_group()
    if torch.device("cpu") in _device_types(group):
        return group
    if group not in _host_groups:
        _host_groups[group] = _group_beside(group, "gloo")
    return _host_groups[group]


def _group_beside(group: torch.distributed.ProcessGroup, backend: str) -> torch.distributed.ProcessGroup:
    """Another group of the same processes, in the same order. Collective."""
    try:
        ranks = torch.distributed.get_process_group_ranks(group)
    except (KeyError, ValueError) as wrong:
        raise BadInput("adasum.torch.State: the process group sends tensors of a device, and PyTorch does not know its processes; "
                       "use one that torch.distributed.new_group has made") from wrong
    order = {"sort_ranks": False} if "sort_ranks" in inspect.signature(torch.distributed.new_group).parameters else {}
    # Only these processes call new_group. So what it counts for the names of groups, which all processes must count alike, stays
    # as it was, and it must not split a communicator of all processes, as it does where the default group knows its device.
    distributed = torch.distributed.distributed_c10d
    world, default = distributed._world, distributed._get_default_group()
    count, device = world.group_count, getattr(default, "bound_device_id", None)
    _groups_beside[tuple(ranks)] += 1
    world.group_count = -_groups_beside[tuple(ranks)]
    try:
        if device is not None:
            default.bound_device_id = None
        made = torch.distributed.new_group(ranks, backend=backend, timeout=datetime.timedelta(seconds=_timeout_of(group)),
                                           use_local_synchronization=True, **order)
    finally:
        world.group_count = count
        if device is not None:
            default.bound_device_id = device
    weakref.finalize(group, _end, made).atexit = False
    return made


_groups_beside: collections.Counter[tuple[int, ...]] = collections.Counter()
"""How many of these processes have been made, which tells apart their names."""


def _end(group: torch.distributed.ProcessGroup) -> None:
    if group in torch.distributed.distributed_c10d._world.pg_map:  # and not destroyed with all others
        torch.distributed.destroy_process_group(group)


def _device_types(group: torch.distributed.ProcessGroup) -> list[torch.device]:
    """What the group has backends for. In PyTorch 1.13, groups have one backend, and do not say for what."""
    return getattr(group, "_device_types", [torch.device("cpu")])


def _sends_from_devices(group: torch.distributed.ProcessGroup) -> bool:
    """Gloo and MPI, as PyTorch builds them, send no tensors of devices from process to process."""
    return any(device.type != "cpu" and group._get_backend(device).name() not in ("gloo", "mpi")
               for device in _device_types(group))


def _processors(group: torch.distributed.ProcessGroup) -> dict[str, str]:
    """For each type of device: what may make PyTorch's operators round differently there, in a few characters. (Asking for that
    of an accelerator begins its use, so only where the group sends its tensors.)"""
    found = {}
    if hasattr(getattr(torch.backends, "cpu", None), "get_cpu_capability"):
        found["cpu"] = torch.backends.cpu.get_cpu_capability()
    if _sends_from_devices(group) and hasattr(torch, "accelerator") and torch.accelerator.is_available():
        kind = torch.accelerator.current_accelerator()
        try:
            properties = torch.get_device_module(kind).get_device_properties(torch.accelerator.current_device_index())
            found[kind.type] = f"{properties.major}.{properties.minor} x {properties.multi_processor_count}"
        except (AttributeError, RuntimeError):  # not every device tells
            pass
    return found


class State:
    """The rule and the plans that :func:`hook` uses. A thread reduces buckets while the backward pass goes on. All States of a
    process group share this thread; their reductions run in the order in which they were requested.

    Collective over the group if ``init_process_group`` has been called; otherwise, the first use is. The gradients that
    DistributedDataParallel then hands to the optimizer are the rule's result, which is not divided by the number of processes.

    A State can be copied and pickled. The copy has the same settings, and begins anew: with step 0, and with nothing that the
    rule kept. Its first use is collective. If the State had a process group of its own, a copy has it as well, but one that is
    loaded from a file uses the default group, and warns of that.

    Args:
        process_group: A group whose backends send the tensors: gloo those of the CPU, NCCL those of CUDA devices. If None, the
            default group. A group that sends tensors of a device gets another one beside it, with the same backends, for these;
            and one that sends no tensors of the CPU one of gloo, for what processes tell each other. Tensors of a device in a
            group of gloo alone are copied to the host. The group may be used for other things meanwhile, except for messages
            with the tags 24301 to 24303. Its timeout is how long a process waits for another.
        rule: The rule's name, with parameters after a colon: ``"mean"``, ``"centred_clipping:radius=2"``; :func:`adasum.rules`
            lists them.
        per_layer: Whether each parameter (with :meth:`reduce`, each segment) gets its own weights, and each row of a parameter
            with sparse gradients. If False, the whole model (each tensor) gets one set of weights, and all buckets wait for the
            last one.
        report_every: ``on_report`` is called each time this number of steps has ended; 0: never.
        on_report: ``on_report(step, reports)``, with one :class:`adasum.Report` for each bucket.
        kernels: What computes. ``"compiled"``: this package's own kernels, for the CPU and, if it was installed with them, for
            CUDA devices. ``"pytorch"``: PyTorch's operators, on whatever device a tensor is; sums are made in double.
            ``"auto"``: the former where there are any, and otherwise the latter.
        shard: ``(replica, part)``, if gradients are split over several processes: whose gradient this process has, and which
            part of it. The group then has replicas x parts processes, and the weights are those of the whole gradients. Segment
            k of each part belongs to segment k of the whole gradient; its length may differ from part to part, and may be zero.
        options: ``check_agreement``, ``measure``, ``nonfinite`` (``"propagate"``, ``"exclude"``, ``"raise"``), ``wire``
            (``"same"``, ``"bfloat16"``, ``"binary16"``).

    Raises:
        BadInput: On a process whose arguments cannot be used.
        CommunicationError: On the other processes; with ``check_agreement=True``, this is an ``AgreementError``.
    """

    def __init__(self, process_group: Optional[torch.distributed.ProcessGroup] = None, rule: str = "adasum", *,
                 per_layer: bool = True, report_every: int = 0,
                 on_report: Optional[Callable[[int, list[Report]], object]] = None,
                 kernels: str = "auto", shard: Optional[tuple[int, int]] = None, **options: Any) -> None:
        require_group(process_group)
        self._rule, self._options, problem = "", "", ""
        try:
            self._options = text_of(options).decode()  # first: they say how the others are told
            self._rule = name_of(rule).decode()
            _require_usable(per_layer, report_every, on_report, shard)
        except BadInput as wrong:  # of which the other processes are told
            shard, problem = None, str(wrong)
        self._process_group, self._per_layer, self._shard, self._kernels = process_group, per_layer, shard, str(kernels)
        self._report_every, self._on_report = report_every, on_report
        self._begin_anew()
        if torch.distributed.is_initialized():
            self._connect(self._group(), problem)
        elif problem:
            raise BadInput(problem)
        else:
            require_settings(self._rule, self._options, self._kernels)

    def _begin_anew(self) -> None:
        self._connected: Optional[tuple[torch.distributed.ProcessGroup, Reducer]] = None
        # The buckets of this step, where all of them wait for the last.
        self._waiting: list[tuple[torch.Tensor, list[int], torch.futures.Future]] = []
        self.step = 0
        """How many steps :func:`hook`, or :meth:`begin_step`, has begun."""

    def _group(self) -> torch.distributed.ProcessGroup:
        if self._process_group is not None:  # which some programs make without init_process_group, such as those with torchft
            return self._process_group
        if not torch.distributed.is_initialized():
            raise BadInput("adasum.torch.State: torch.distributed.init_process_group has not been called")
        return torch.distributed.distributed_c10d._get_default_group()

    def _connect(self, group: torch.distributed.ProcessGroup, problem: str = "") -> Reducer:
        reducer = Reducer(_worker_of(group), self._rule, self._options, self._shard, problem, self._kernels, _processors(group))
        self._connected = group, reducer
        return reducer

    @property
    def _reducer(self) -> Reducer:
        """Collective when it is used first, and when there is another default group."""
        group = self._group()
        if self._connected is not None and self._connected[0] is group:
            return self._connected[1]
        return self._connect(group)

    @property
    def _whole_model(self) -> bool:
        return not self._per_layer or self._reducer.is_whole_model

    def reduce(self, tensor: torch.Tensor, segments: Optional[Iterable[int]] = None) -> torch.futures.Future:
        """Begins to reduce a tensor in place, whose segments have these lengths, in the order of its indices, whatever its
        strides. A complex number is one element, and counts as two real ones: inner products are their real parts. Does not
        wait for the reduction, but returns a future of the tensor: ``wait()`` raises what went wrong, and until it returns, the
        tensor must be left alone. Collective, in the same order on all processes. To be called between two calls of
        :meth:`begin_step`; without any, each reduction is a step."""
        if not isinstance(tensor, torch.Tensor):
            return self._reducer.refuse(f"expected a tensor, not {type(tensor).__name__}")
        try:
            lengths = None if segments is None else [_length(one) for one in segments]
            if lengths is not None and not self._per_layer:
                lengths = [_length(sum(lengths))]
        except (TypeError, ValueError) as wrong:
            return self._reducer.refuse(f"the lengths of segments must be a list of integers of at least 0: {wrong}")
        return self._reducer.reduce(tensor, lengths, problem_of_tensor_class(type(tensor)))

    def begin_step(self) -> None:
        """Begins a new step of the training, for programs that call :meth:`reduce` themselves. (:func:`hook` does this with the
        first bucket.) If a rule keeps state for each reduction, reductions of equal segments are told apart by their order in
        the step."""
        self._begin_step()

    def reports(self) -> list[Report]:
        """What the reductions of the last step found: a :class:`adasum.Report` for each bucket."""
        return [Report(text) for text in self._connected[1].reports()] if self._connected else []

    def _reduce_bucket(self, bucket: torch.distributed.GradBucket) -> torch.futures.Future:
        if bucket.index() == 0:
            self._begin_step()
        if not self._whole_model:
            return self._reducer.reduce_bucket(bucket)
        buffer = bucket.buffer()
        done = torch.futures.Future(devices=[] if buffer.device.type == "cpu" else [buffer.device])
        self._waiting.append((buffer, self._reducer.lengths(bucket), done))
        result = done.then(lambda reduced: _copied(reduced.value(), buffer))
        if bucket.is_last():
            self._reduce_whole_model()
        return result

    def _begin_step(self, reductions: Optional[int] = None) -> None:
        """How many reductions the step has; if None, as many as the last one."""
        ended, reports = self.step, self.reports() if self._report_is_due() else []
        self.step += 1
        self._reducer.begin_step()
        if reports:
            try:
                self._on_report(ended, reports)
            except BaseException as problem:
                for _ in range(len(reports) if reductions is None else reductions):  # which the others are about to make
                    self._reducer.refuse(f"on_report raised {problem!r}")
                raise

    def _report_is_due(self) -> bool:
        return bool(self._report_every and self.step and self.step % self._report_every == 0)

    def _reduce_whole_model(self) -> None:
        waiting, self._waiting = self._waiting, []

        def hand_out(done: torch.futures.Future) -> None:
            try:
                parts = done.value().split([buffer.numel() for buffer, _, _ in waiting])
            except Exception as problem:  # each bucket has failed
                parts = [problem] * len(waiting)
            for (_, _, future), part in zip(waiting, parts):
                future.set_result(part)

        if any(buffer.is_sparse for buffer, _, _ in waiting):
            reduced = self._reducer.refuse(
                "a sparse gradient cannot share one set of weights with the whole model. Use nn.Embedding(sparse=False); or "
                "per_layer=True and a rule that works layer by layer, such as 'adasum'")
        else:
            try:
                whole = torch.cat([buffer for buffer, _, _ in waiting])
            except RuntimeError as problem:  # no memory for it, for example
                reduced = self._reducer.refuse(f"the gradients of the whole model cannot be put together: {problem}")
            else:
                lengths = sum((lengths for _, lengths, _ in waiting), []) if self._per_layer else [whole.numel()]
                reduced = self._reducer.reduce(whole, lengths)
        reduced.add_done_callback(hand_out)

    def __copy__(self) -> "State":
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        copied._begin_anew()
        return copied

    def __deepcopy__(self, _: Any) -> "State":
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        settings = self.__copy__().__dict__
        settings["_process_group"] = None
        return {"settings": settings, "had_group": self._process_group is not None}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved["settings"])
        if saved["had_group"]:
            warnings.warn("adasum.torch.State: process groups are not saved: this State was made for one of its own, and now "
                          "uses the default group", stacklevel=2)


def _copied(part: Any, buffer: torch.Tensor) -> torch.Tensor:
    """An exception is raised here, and not given to a future: DistributedDataParallel would take it for a tensor."""
    if isinstance(part, Exception):
        raise part
    return buffer.copy_(part)


def _length(one: Any) -> int:
    if isinstance(one, bool) or not 0 <= operator.index(one) < 1 << 63:
        raise ValueError(f"{one!r}")
    return operator.index(one)


def require_group(group: Any) -> None:
    """Of which all processes learn nothing: there is no way to tell them."""
    if group is None:
        return
    if not isinstance(group, torch.distributed.ProcessGroup):
        raise BadInput(f"adasum.torch: the process group must be one that contains this process, not {group!r}")
    if type(group).size is not torch.distributed.ProcessGroup.size:
        # This library would find what the wrapper itself was made with, such as one process, and combine nothing.
        raise BadInput(f"adasum.torch: {type(group).__name__} wraps a process group; give the group that it wraps (with torchft, "
                       "the attribute parent, after each change of the quorum)")


def _require_usable(per_layer: Any, report_every: Any, on_report: Any, shard: Any) -> None:
    call = "adasum.torch.State"
    if not isinstance(per_layer, bool):
        raise BadInput(f"{call}: per_layer must be True or False, not {per_layer!r}")
    if not isinstance(report_every, int) or isinstance(report_every, bool) or report_every < 0:
        raise BadInput(f"{call}: report_every must be a number of steps, or 0, not {report_every!r}")
    if bool(report_every) != callable(on_report):
        raise BadInput(f"{call}: give both report_every above 0 and on_report, a function, or neither")
    if shard is not None and not (isinstance(shard, tuple) and len(shard) == 2 and
                                  all(isinstance(one, int) and 0 <= one < 1 << 31 for one in shard)):
        raise BadInput(f"{call}: shard must be (replica, part), two integers of at least 0, not {shard!r}")


def hook(state: State, bucket: torch.distributed.GradBucket, *more: Any) -> torch.futures.Future[torch.Tensor]:
    """For ``ddp.register_comm_hook(state, hook)``: combines the bucket's gradients of all processes under the state's rule."""
    if not isinstance(state, State):
        raise BadInput(f"adasum.torch.hook: the state must be an adasum.torch.State, not {type(state).__name__}")
    if more or not isinstance(bucket, torch.distributed.GradBucket):
        problem = ("the hook got no bucket: adasum.torch.hook is for DistributedDataParallel. For FSDP, use fully_shard and "
                   "adasum.torch.apply_to_fsdp, not register_comm_hook")
        state._reducer.refuse(problem)
        raise BadInput(f"adasum.torch: {problem}")
    return state._reduce_bucket(bucket)
