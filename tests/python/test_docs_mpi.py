# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples for numpy and mpi4py in pages run, one after the other: mpirun -n 2 python3 -m pytest test_docs_mpi.py"""

import numpy
import pytest

from pages import examples_of

examples = [one for page in ("docs/python.md", "docs/index.md") for one in examples_of(page)
            if "torch" not in one[1] and "jax" not in one[1]]


def test_there_are_examples():
    assert len(examples) > 3 and sum("mpi4py" in example for _, example in examples) > 1


@pytest.mark.parametrize("number", range(len(examples)))
def test_example(number):
    """With the names that the page speaks of. On 2 ranks, whose gradients are 1 and 2, the result is 1.5."""
    from mpi4py import MPI

    import adasum

    name, example = examples[number]
    names = {one: numpy.arange(1000.0) for one in "abc"}
    names.update(adasum=adasum, MPI=MPI, steps=2, gradient=numpy.full(1000, 1.0 + MPI.COMM_WORLD.rank, dtype=numpy.float32))
    exec(compile(example, name, "exec"), names)
    if "allreduce" in example or "plan" in example:
        assert numpy.all(names["gradient"] == 1.5)
