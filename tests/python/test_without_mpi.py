# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A package that was built without MPI says so where MPI is needed."""

import numpy
import pytest

import adasum

MPI = pytest.importorskip("mpi4py.MPI")


def test_calls_among_ranks_are_refused():
    for call in (lambda: adasum.allreduce(numpy.ones(3), MPI.COMM_SELF), lambda: adasum.Plan(MPI.COMM_SELF, 3, "float64"),
                 lambda: adasum.set_timeout(MPI.COMM_SELF, 1)):
        with pytest.raises(adasum.MPIError, match="built without MPI"):
            call()
