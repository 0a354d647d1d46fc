# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exceptions of this package. They have the names of the C++ library's."""


class Error(Exception):
    """What all others derive from."""


class BadInput(Error, ValueError):
    """An argument cannot be used; the data are unchanged."""


class AgreementError(Error):
    """Ranks do not agree on what they are about to do: the same on all ranks. Or another rank has bad input, on which that rank
    raises :class:`BadInput`. The data are unchanged."""


class NonfiniteError(Error, ArithmeticError):
    """A gradient holds Inf or NaN, and the option ``nonfinite`` is ``raise``. The same on all ranks; the data are unchanged."""


class SharedMemoryError(Error):
    """There is no room for memory that ranks share."""


class CommunicationError(Error):
    """Another rank failed, or the communicator did. The data are unspecified."""


class TimeoutError(CommunicationError):  # noqa: A001  the name of the C++ library's
    """Another rank did not come in time."""


class MPIError(CommunicationError):
    """A function of MPI failed."""


for _one in (Error, BadInput, AgreementError, NonfiniteError, SharedMemoryError, CommunicationError, TimeoutError, MPIError):
    _one.__module__ = "adasum"
