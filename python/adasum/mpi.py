# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of the ranks of an mpi4py communicator."""

import ctypes
from ctypes import byref, c_int, c_void_p

from ._arrays import Elements
from ._errors import BadInput, MPIError
from ._library import Handle, check, lengths_of, library, text_of
from .report import Report


def _prototypes(handle):
    """An MPI_Comm is a number for one MPI library, and an address for another."""
    lengths = ctypes.POINTER(ctypes.c_size_t)
    size, text, report = ctypes.c_size_t, ctypes.c_char_p, ctypes.POINTER(Handle)
    library.adasum_allreduce.restype = library.adasum_plan_create.restype = library.adasum_set_timeout.restype = c_int
    library.adasum_allreduce.argtypes = [handle, c_void_p, size, c_int, lengths, size, text, text, report]
    library.adasum_plan_create.argtypes = [handle, size, c_int, lengths, size, text, text, report]
    library.adasum_set_timeout.argtypes = [handle, ctypes.c_double]


_handle_type = None


def _handle_of(comm, call):
    """The MPI_Comm of mpi4py's communicator."""
    global _handle_type
    from mpi4py import MPI

    if not isinstance(comm, MPI.Comm):
        raise BadInput(f"{call}: not a communicator of mpi4py's, but {type(comm).__name__}")
    if _handle_type is None:
        if not hasattr(library, "adasum_mpi_library"):
            raise MPIError(f"{call}: this package was built without MPI")
        library.adasum_mpi_library.restype = ctypes.c_char_p
        ours, theirs = library.adasum_mpi_library().decode(), MPI.Get_library_version()
        if ours.split("\0")[0].strip() != theirs.split("\0")[0].strip():
            raise MPIError(f"{call}: this package uses the MPI library {ours.strip()!r}, mpi4py uses {theirs.strip()!r}; "
                           "build both for the same one")
        _handle_type = c_int if MPI._sizeof(MPI.Comm) == ctypes.sizeof(c_int) else c_void_p
        _prototypes(_handle_type)
    return _handle_type.from_address(MPI._addressof(comm))


def allreduce(array, comm, *, segments=None, rule="adasum", **options):
    """Combines the arrays of all ranks of an mpi4py communicator under a rule, in place; all ranks get the same bits.

    array: contiguous, of float64, float32, float16 or bfloat16: numpy's, or what offers DLPack.
    segments: the lengths of the segments (layers); without them, the whole array is one.
    rule: a name, with parameters after a colon; rules() lists them.
    options: check_agreement, measure, nonfinite, wire, timeout, keep_plan.
    Collective; other threads of Python run meanwhile. Returns a Report."""
    call = "adasum.allreduce"
    handle = _handle_of(comm, call)
    elements = Elements(array, call, written=True)
    found = Report()
    check(library.adasum_allreduce(handle, elements.address, elements.count, elements.type, *lengths_of(segments),
                                   rule.encode(), text_of(options), byref(found._handle)))
    return found


class Plan:
    """A reduction that is set up once and run many times, on arrays of the same length and type. Collective over `comm`.

        plan = adasum.Plan(comm, 1000, "float32", segments=[600, 400])
        report = plan(array)           # in place
        plan.start(array); ...; report = plan.wait()   # beside other work
    """

    def __init__(self, comm, count, dtype="float32", *, segments=None, rule="adasum", **options):
        from ._arrays import _types

        self._handle = Handle(0)
        call = "adasum.Plan"
        name = str(getattr(dtype, "name", dtype)).removeprefix("torch.")
        if name not in _types:
            raise BadInput(f"{call}: no gradients of {name}, but of {', '.join(_types)}")
        check(library.adasum_plan_create(_handle_of(comm, call), count, _types[name], *lengths_of(segments), rule.encode(),
                             text_of(options), byref(self._handle)))
        self._running = None

    def start(self, array):
        """Begins to reduce the array, which belongs to the plan until wait() has returned."""
        elements = Elements(array, "adasum.Plan.start", written=True)
        check(library.adasum_plan_start(self._handle, elements.address, elements.count, elements.type))
        self._running = elements

    def test(self):
        """Goes on as far as that is possible without waiting; whether wait() will not wait."""
        done = c_int(0)
        check(library.adasum_plan_test(self._handle, byref(done)))
        return bool(done.value)

    def wait(self):
        """Waits for the result. Ctrl-C is answered; this rank then leaves the reduction. Returns a Report."""
        while not self.test():  # and Python looks after its signals in between
            pass
        found = Report()
        error = library.adasum_plan_wait(self._handle, byref(found._handle))
        self._running = None
        check(error)
        return found

    def __call__(self, array):
        """Reduces the array in place. Returns a Report."""
        self.start(array)
        return self.wait()

    def free(self):
        """Frees what the plan owns. One that is in flight withdraws, and the others' wait() fails."""
        check(library.adasum_plan_free(byref(self._handle)))
        self._running = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def __del__(self):
        if getattr(self, "_handle", None) is not None and self._handle.id and library is not None:
            library.adasum_plan_free(byref(self._handle))


def set_timeout(comm, seconds):
    """How long this rank waits for others at the most, in all calls on `comm` from now on."""
    check(library.adasum_set_timeout(_handle_of(comm, "adasum.set_timeout"), seconds))
