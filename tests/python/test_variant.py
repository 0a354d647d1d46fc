# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A wheel's package, which has a library without MPI and one for mpi4py's: what each has made and said stays its own."""

import numpy
import pytest
from mpi4py import MPI

import adasum


def test_each_library_knows_its_own():
    _, before = adasum.tree([numpy.array([3.0, 4.0])])  # reports are read when they are asked for
    among = adasum.allreduce(numpy.array([6.0, 8.0]), MPI.COMM_SELF)
    _, after = adasum.tree([numpy.array([9.0, 12.0])])
    assert [report["norms"] for report in (before, among, after)] == [[[5.0]], [[10.0]], [[15.0]]]
    for call in (lambda: adasum.tree([numpy.ones(3)], segments=[4]),
                 lambda: adasum.allreduce(numpy.ones(3), MPI.COMM_SELF, segments=[5])):
        with pytest.raises(adasum.BadInput, match="segments"):
            call()


def test_configuration_names_the_variant(capsys):
    adasum.show_config()
    theirs = MPI.Get_library_version().rstrip("\0").splitlines()[0]
    variant = "openmpi" if "Open MPI" in theirs else "mpich"
    shown = capsys.readouterr().out
    assert f"\nMPI: {variant}, whichever mpi4py uses\n" in shown and f"\nMPI of mpi4py: {theirs}\n" in shown
