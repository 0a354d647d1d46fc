# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A package that lacks a part, as a wheel may, says so where that is needed."""

import numpy
import pytest

import adasum


def test_calls_among_ranks_are_refused():
    MPI = pytest.importorskip("mpi4py.MPI")
    for call in (lambda: adasum.allreduce(numpy.ones(3), MPI.COMM_SELF), lambda: adasum.Plan(MPI.COMM_SELF, 3, "float64"),
                 lambda: adasum.set_timeout(MPI.COMM_SELF, 1)):
        with pytest.raises(adasum.MPIError, match="built without the MPI library that mpi4py uses, '"):
            call()


def test_torch_is_refused():
    pytest.importorskip("torch")
    with pytest.raises(ImportError, match="built without PyTorch, .*compile it .* by `pip install .`"):
        import adasum.torch  # noqa: F401
