# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A communication hook for DistributedDataParallel."""

import atexit
import operator
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Optional

import torch
import torch.distributed

from .._errors import BadInput
from .._library import name_of, text_of
from ..report import Report

try:
    from .._torch import Reducer, Worker, abandon_all
except ImportError as problem:
    raise ImportError("adasum.torch: this package was built without PyTorch, or for another version of it; install it again "
                      "where this PyTorch is installed") from problem

atexit.register(abandon_all)  # a rank may be waiting for others that do not come, and must not keep this process from ending

_workers: weakref.WeakKeyDictionary[torch.distributed.ProcessGroup, Worker] = weakref.WeakKeyDictionary()
"""The thread of each group. It lives as long as the group, so that all ranks make it with the first State."""


def _worker_of(group: torch.distributed.ProcessGroup) -> Worker:
    if group not in _workers:
        _workers[group] = Worker(group, _timeout_of(group))
    return _workers[group]


def _timeout_of(group: torch.distributed.ProcessGroup) -> float:
    """In seconds; as init_process_group was told, where the backend says so."""
    try:
        backend = group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group
        return backend.options._timeout.total_seconds()
    except (AttributeError, RuntimeError):
        return 1800.0  # PyTorch's own default


class State:
    """The rule and the plans that :func:`hook` uses. A thread reduces buckets while the backward pass goes on. All States of a
    process group share this thread; their reductions run in the order in which they were requested.

    Collective over the group. The gradients that DistributedDataParallel then hands to the optimizer are the rule's result,
    which is not divided by the number of processes.

    Args:
        process_group: A group whose backend sends CPU tensors, such as gloo; if None, the default group. It may be used for
            other things meanwhile, except for messages with the tags 24301 and 24302. Its timeout is how long a process waits
            for another.
        rule: The rule's name, with parameters after a colon: ``"mean"``, ``"centred_clipping:radius=2"``; :func:`adasum.rules`
            lists them.
        per_layer: Whether each parameter gets its own weights. If False, the whole model gets one set of weights, and all
            buckets wait for the last one.
        report_every: ``on_report`` is called each time this number of steps has ended; 0: never.
        on_report: ``on_report(step, reports)``, with one :class:`adasum.Report` for each bucket.
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
                 shard: Optional[tuple[int, int]] = None, **options: Any) -> None:
        if not torch.distributed.is_initialized():
            raise BadInput("adasum.torch.State: torch.distributed.init_process_group has not been called")
        if process_group is None:
            process_group = torch.distributed.distributed_c10d._get_default_group()
        if not isinstance(process_group, torch.distributed.ProcessGroup):
            raise BadInput("adasum.torch.State: the process group must be one that contains this process, not "
                           f"{process_group!r}")
        rule_text, options_text, problem = "", "", ""
        try:
            options_text = text_of(options).decode()  # first: they say how the others are told
            rule_text = name_of(rule).decode()
            _require_usable(report_every, on_report, shard)
        except BadInput as wrong:  # of which the other processes are told
            shard, problem = None, str(wrong)
        self._reducer = Reducer(_worker_of(process_group), rule_text, options_text, shard, problem)
        self._per_layer = per_layer
        self._whole_model = not per_layer or self._reducer.is_whole_model
        # The buckets of this step, where all of them wait for the last.
        self._waiting: list[tuple[torch.Tensor, list[int], torch.futures.Future]] = []
        self._report_every, self._on_report = report_every, on_report
        self.step = 0
        """How many steps have begun."""

    def reduce(self, tensor: torch.Tensor, segments: Optional[Iterable[int]] = None) -> torch.futures.Future:
        """Begins to reduce a tensor in place, whose segments have these lengths. Returns a future of the tensor. Collective, in
        the same order on all processes. To be called between two calls of :meth:`begin_step`; without any, each reduction is a
        step."""
        if not isinstance(tensor, torch.Tensor):
            return self._reducer.refuse(f"expected a tensor, not {type(tensor).__name__}")
        try:
            lengths = [tensor.numel()] if segments is None else [_length(one) for one in segments]
        except (TypeError, ValueError) as problem:
            return self._reducer.refuse(f"the lengths of segments must be a list of integers of at least 0: {problem}")
        return self._reducer.reduce(tensor, lengths)

    def begin_step(self) -> None:
        """Begins a new step of the training, for programs that call :meth:`reduce` themselves. (:func:`hook` does this with the
        first bucket.) If a rule keeps state for each reduction, reductions of equal segments are told apart by their order in
        the step."""
        self._begin_step()

    def reports(self) -> list[Report]:
        """What the reductions of the last step found: a :class:`adasum.Report` for each bucket."""
        return [Report(text) for text in self._reducer.reports()]

    def _reduce_bucket(self, bucket: torch.distributed.GradBucket) -> torch.futures.Future:
        if bucket.index() == 0:
            self._begin_step()
        if not self._whole_model:
            return self._reducer.reduce_bucket(bucket)
        future = torch.futures.Future()
        self._waiting.append((bucket.buffer(), self._reducer.lengths(bucket), future))
        if bucket.is_last():
            self._reduce_whole_model()
        return future

    def _begin_step(self) -> None:
        ended, reports = self.step, self.reports() if self._report_is_due() else []
        self.step += 1
        self._reducer.begin_step()
        if reports:
            try:
                self._on_report(ended, reports)
            except Exception as problem:
                self._reducer.refuse(f"on_report raised {problem!r}")  # the others are about to reduce a bucket
                raise

    def _report_is_due(self) -> bool:
        return bool(self._report_every and self.step and self.step % self._report_every == 0)

    def _reduce_whole_model(self) -> None:
        waiting, self._waiting = self._waiting, []
        whole = torch.cat([buffer for buffer, _, _ in waiting])
        lengths = sum((lengths for _, lengths, _ in waiting), []) if self._per_layer else [whole.numel()]

        def hand_out(done: torch.futures.Future) -> None:
            try:
                parts = done.value().split([buffer.numel() for buffer, _, _ in waiting])
            except Exception as problem:  # each bucket has failed
                for _, _, future in waiting:
                    future.set_exception(problem)
                return
            for (buffer, _, future), part in zip(waiting, parts):
                buffer.copy_(part)
                future.set_result(buffer)

        self._reducer.reduce(whole, lengths).add_done_callback(hand_out)

    def __getstate__(self) -> NoReturn:
        raise TypeError("adasum.torch.State belongs to this process: it cannot be pickled")


def _length(one: Any) -> int:
    if isinstance(one, bool) or not 0 <= operator.index(one) < 1 << 63:
        raise ValueError(f"{one!r}")
    return operator.index(one)


def _require_usable(report_every: Any, on_report: Any, shard: Any) -> None:
    call = "adasum.torch.State"
    if not isinstance(report_every, int) or report_every < 0:
        raise BadInput(f"{call}: report_every must be a number of steps, or 0, not {report_every!r}")
    if bool(report_every) != callable(on_report):
        raise BadInput(f"{call}: give both report_every above 0 and on_report, a function, or neither")
    if shard is not None and not (isinstance(shard, tuple) and len(shard) == 2 and
                                  all(isinstance(one, int) and 0 <= one < 1 << 31 for one in shard)):
        raise BadInput(f"{call}: shard must be (replica, part), two integers of at least 0, not {shard!r}")


def hook(state: State, bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For ``ddp.register_comm_hook(state, hook)``: combines the bucket's gradients of all processes under the state's rule."""
    return state._reduce_bucket(bucket)
