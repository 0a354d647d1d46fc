# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of the ranks of an mpi4py communicator."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable
from ctypes import byref, c_char_p, c_double, c_int, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

from ._arrays import Array, Elements, type_number
from ._errors import BadInput, MPIError
from ._interruption import answer_signals
from ._library import (Handle, check, declare, lengths_of, library, load, name_of, readable_text_of, require_no_bool, shown,
                       text_of, timeout_code, whole_number)
from .report import Report

if TYPE_CHECKING:
    from mpi4py import MPI

_unfinished: list[Any] = []
"""Arrays of reductions that ended by a timeout, or by Ctrl-C: messages may still arrive in them, so they are never freed."""
_handle_type: Any = None  # an MPI_Comm is a number for one MPI library, and an address for another
_mpi: Any = None  # the library with the calls among ranks; its plans, reports and errors are unknown to any other
_variants = {"libmpi.so.12": "mpich", "libmpi.so.40": "openmpi"}
"""What a wheel has, by the MPI library that it uses: MPICH and all that keep its ABI; Open MPI 4 and 5."""


def _library_for(theirs: str, call: str) -> ctypes.CDLL:
    """The package's own library if it was built with MPI, otherwise the variant for what mpi4py has loaded, ``theirs``."""
    if hasattr(library, "adasum_allreduce"):
        return library
    for name, variant in _variants.items():
        try:
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
        except OSError:  # it is not there already
            continue
        with contextlib.suppress(ImportError):
            return load(variant)
    raise MPIError(f"{call}: this package was built without the MPI library that mpi4py uses, {theirs.splitlines()[0]!r}; "
                   "build it from its sources, where that is installed")


def _prepare(call: str) -> None:
    """To be called before the first call: checks that both use the same MPI library, and finds out how long an MPI_Comm is."""
    global _handle_type, _mpi
    from mpi4py import MPI

    theirs = MPI.Get_library_version().rstrip("\0").strip()
    library = _library_for(theirs, call)
    declare(library, {"adasum_mpi_library": (c_char_p,)})
    ours = library.adasum_mpi_library().decode().strip()
    if ours != theirs:
        raise MPIError(f"{call}: this package uses the MPI library {ours!r}, but mpi4py uses {theirs!r}; install both for "
                       "the same one")
    handle = c_int if MPI._sizeof(MPI.Comm) == ctypes.sizeof(c_int) else c_void_p
    lengths, result = ctypes.POINTER(c_size_t), ctypes.POINTER(Handle)
    declare(library, {
        "adasum_allreduce": (c_int, handle, c_void_p, c_size_t, c_int, lengths, c_size_t, c_char_p, c_char_p, result),
        "adasum_set_timeout": (c_int, handle, c_double),
        "adasum_plan_create": (c_int, handle, c_size_t, c_int, lengths, c_size_t, c_char_p, c_char_p, result),
        "adasum_plan_run": (c_int, Handle, c_void_p, c_size_t, c_int, result),
        "adasum_plan_start": (c_int, Handle, c_void_p, c_size_t, c_int),
        "adasum_plan_test": (c_int, Handle, ctypes.POINTER(c_int)),
        "adasum_plan_wait": (c_int, Handle, result),
        "adasum_plan_free": (c_int, result),
        "adasum_python_refuse": (c_int, handle, c_char_p, c_char_p),
        "adasum_python_refuse_start": (c_int, Handle, c_char_p),
    })
    answer_signals(library)
    _handle_type, _mpi = handle, library


def _handle_of(comm: MPI.Comm, call: str) -> Any:
    """The MPI_Comm of mpi4py's communicator."""
    if _handle_type is None:
        _prepare(call)
    from mpi4py import MPI

    if not isinstance(comm, MPI.Comm):
        raise BadInput(f"{call}: the communicator must be an mpi4py.MPI.Comm, not {type(comm).__name__}")
    return _handle_type.from_address(MPI._addressof(comm))


def _count_of(given: Any, call: str) -> int:
    """How many elements a plan is for."""
    try:
        count = whole_number(given)
    except TypeError as problem:
        raise BadInput(f"{call}: the number of elements must be an integer: {problem}") from problem
    if not 0 <= count < 1 << 63:
        raise BadInput(f"{call}: the number of elements is {shown(count)}; it must be at least 0 and below 2**63")
    return count


def _told(problem: Exception) -> bytes:
    """The problem, as the other ranks hear of it."""
    text = type(problem).__name__
    with contextlib.suppress(Exception):  # of a caller's own exception: the others wait to be told in any case
        text = str(problem) or text
    return text.encode(errors="backslashreplace").replace(b"\0", b"\\0")


def allreduce(array: Array, comm: MPI.Comm, *, segments: Iterable[int] | None = None, rule: str = "adasum",
              **options: Any) -> Report:
    """Combines the arrays of all ranks of an mpi4py communicator under a rule, in place; all ranks get the same bits.

    Collective over ``comm``. Blocks until the result is there; meanwhile, other Python threads run, and Ctrl-C works.

    Args:
        array: A contiguous array of float64, float32, float16 or bfloat16, from numpy or any library that offers DLPack.
        comm: The ranks.
        segments: The lengths of the segments (layers); without them, the whole array is one.
        rule: The rule's name, with parameters after a colon: ``"mean"``, ``"centred_clipping:radius=2"``; :func:`rules` lists
            them.
        options: ``check_agreement``, ``measure``, ``nonfinite``, ``wire``, ``timeout``, ``keep_plan``; see
            docs/guide/options.md.

    Returns:
        A :class:`Report`.

    Raises:
        BadInput: On a rank whose arguments cannot be used.
        CommunicationError: On the other ranks.
        AgreementError: On the other ranks with ``check_agreement=True``; it names the rank. No array has changed.
    """
    call = "adasum.allreduce"
    handle = _handle_of(comm, call)
    try:
        asked = text_of(options)
        elements = Elements(array, call, written=True)
        lengths = lengths_of(segments)
        named = name_of(rule)
    except Exception as problem:  # the others are about to wait for this rank
        _mpi.adasum_python_refuse(handle, readable_text_of(options), _told(problem))
        raise
    found = Handle(0)
    error = _mpi.adasum_allreduce(handle, elements.address, elements.count, elements.type, *lengths, named, asked,
                                  byref(found))
    if error == timeout_code:
        _unfinished.append(elements)
    check(error, _mpi)
    return Report._of(found, _mpi)


class Plan:
    """A reduction that is set up once and run many times, on arrays of one length and type. Collective over ``comm``::

        plan = adasum.Plan(comm, 1000, "float32", segments=[600, 400])
        report = plan(array)                           # in place
        plan.start(array); ...; report = plan.wait()   # beside other work

    A rule with state keeps it from run to run. Making a plan, and each run, raise the errors of :func:`allreduce`.

    Args:
        comm: The ranks.
        count: How many elements an array has.
        dtype: An element type of numpy or PyTorch, or its name.
        segments: As for :func:`allreduce`; so are ``rule`` and ``options``.
    """

    def __init__(self, comm: MPI.Comm, count: int, dtype: Any = "float32", *, segments: Iterable[int] | None = None,
                 rule: str = "adasum", **options: Any) -> None:
        self._handle = Handle(0)
        self._running: Elements | None = None
        self._problem: Exception | None = None
        call = "adasum.Plan"
        handle = _handle_of(comm, call)
        try:
            asked = text_of(options)
            kind = type_number(dtype, call)
            lengths = lengths_of(segments)
            named = name_of(rule)
            elements = _count_of(count, call)
        except Exception as problem:
            _mpi.adasum_python_refuse(handle, readable_text_of(options), _told(problem))
            raise
        check(_mpi.adasum_plan_create(handle, elements, kind, *lengths, named, asked, byref(self._handle)), _mpi)
        self._type = kind

    def start(self, array: Array) -> None:
        """Begins to reduce the array in place, without waiting for other ranks. The array belongs to the plan until
        :meth:`wait` has returned. If something is wrong with the array, :meth:`wait` raises the error."""
        self._problem = None
        try:
            elements = Elements(array, "adasum.Plan.start", written=True)
            elements.require_type(self._type, "adasum.Plan.start")
        except Exception as problem:
            check(_mpi.adasum_python_refuse_start(self._handle, _told(problem)), _mpi)
            self._problem = problem
            return
        check(_mpi.adasum_plan_start(self._handle, elements.address, elements.count, elements.type), _mpi)
        self._running = elements

    def test(self) -> bool:
        """Continues the reduction as far as is possible without waiting. Returns whether :meth:`wait` would return at once."""
        done = c_int(0)
        check(_mpi.adasum_plan_test(self._handle, byref(done)), _mpi)
        return bool(done.value)

    def wait(self) -> Report:
        """Blocks until the array holds the result. Returns a :class:`Report`."""
        found = Handle(0)
        error = _mpi.adasum_plan_wait(self._handle, byref(found))
        report = Report._of(found, _mpi)
        if error == timeout_code:
            _unfinished.append(self._running)
        self._running = None
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        check(error, _mpi)
        return report

    def __call__(self, array: Array) -> Report:
        """Reduces the array in place. Returns a :class:`Report`."""
        self.start(array)
        return self.wait()

    def free(self) -> None:
        """Frees what the plan owns. A plan in flight withdraws from its reduction; the other ranks' :meth:`wait` then fails."""
        if self._handle.id:
            check(_mpi.adasum_plan_free(byref(self._handle)), _mpi)
        self._running = None

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: Any) -> None:
        self.free()

    def __del__(self) -> None:
        if _mpi is not None and getattr(self, "_handle", None) is not None and self._handle.id:
            _mpi.adasum_plan_free(byref(self._handle))


def set_timeout(comm: MPI.Comm, seconds: float) -> None:
    """Sets how many seconds at most this rank waits for others, in all calls on ``comm`` from now on. The default,
    ``math.inf``, means for ever. After a :class:`TimeoutError`, ``comm`` and its plans cannot be used any more, the arrays must
    not be touched, and the program should end by ``comm.Abort()``."""
    call = "adasum.set_timeout"
    try:
        require_no_bool(seconds)
        limit = c_double(seconds)
    except (TypeError, OverflowError) as problem:
        raise BadInput(f"{call}: the timeout must be a number of seconds: {problem}") from problem
    handle = _handle_of(comm, call)  # first: it tells whether there is such a function
    check(_mpi.adasum_set_timeout(handle, limit), _mpi)
