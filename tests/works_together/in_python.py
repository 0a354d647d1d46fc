# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the package adasum offers for numpy arrays, each of it run among the ranks of mpi4py's COMM_WORLD; with what it prints,
see compare.py."""

import numpy
from mpi4py import MPI

import adasum

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
length, segments = 60, [20, 40]


def found(feature, right):
    """Prints a line of what was found, on rank 0."""
    assert world.allreduce(bool(right), MPI.LAND), feature
    if rank == 0:
        print(f"  {feature}: right", flush=True)


def gradient_of(one, dtype="f4"):
    """Gradients that are orthogonal, so that Adasum adds them: ones at every size-th place."""
    gradient = numpy.zeros(length, dtype)
    gradient[one::size] = 1
    return gradient


def reduced(dtype="f4", **options):
    mine = gradient_of(rank, dtype)
    return mine, adasum.allreduce(mine, world, **options)


def raises(error, call, words):
    try:
        call()
    except error as problem:
        return words in str(problem)
    return False


def main():
    if rank == 0:
        print("[languages]\nPython")
    a = numpy.array([1.0, 0, 1, 0], "f4")
    found("two gradients of one process", (adasum.pair(a, 1 - a, segments=[2, 2]) == 1).all())
    found("any number of gradients of one process", (adasum.combine([a, a, 1 - a], rule="sum")[0] == [2, 1, 2, 1]).all())
    found("allreduce", (reduced()[0] == 1).all())
    found("segments", (reduced(segments=segments)[0] == 1).all())

    with adasum.Plan(world, length, "float32", segments=segments) as plan:
        mine = gradient_of(rank)
        plan(mine)
        found("a plan", (mine == 1).all())
        mine = gradient_of(rank)
        plan.start(mine)
        while not plan.test():
            pass
        plan.wait()
        found("beside other work", (mine == 1).all())

    right = True
    for name in adasum.rules():
        rule = name + ":byzantine=1,rule=mean" if name == "nearest_neighbour_mixing" else name
        expected = adasum.combine([gradient_of(one) for one in range(size)], rule=rule, segments=segments)[0]
        right = right and numpy.abs(reduced(rule=rule, segments=segments)[0] - expected).max() <= 1e-5
    found("every rule of the library", right and len(adasum.rules()) >= 22)

    for name, dtype in [("float", "f4"), ("double", "f8"), ("binary16", "f2")]:
        found(name, (reduced(dtype)[0] == 1).all())

    try:
        numpy.dtype("bfloat16")
    except TypeError as problem:
        if rank == 0:
            print(f"  bfloat16: call: {problem}")

    found("check_agreement", raises(adasum.AgreementError, lambda: adasum.allreduce(numpy.zeros(length - (rank == 0), "f4"), world,
                                                                                    check_agreement=True),
                                    "disagree on the length"))
    mine, report = reduced(rule="sum", measure="when_needed")
    found("measure", (mine == 1).all() and report["norms"] == [[None] * size])
    mine = gradient_of(rank)
    if rank == 1:
        mine[0] = numpy.inf
    found("nonfinite", adasum.allreduce(mine, world, rule="sum", nonfinite="exclude")["excluded"] == [1])
    found("wire", (reduced(wire="bfloat16", keep_plan=False)[0] == 1).all())
    found("keep_plan", (reduced(keep_plan=False)[0] == 1).all())
    found("timeout", raises(adasum.BadInput, lambda: adasum.allreduce(mine, world, timeout=0), "it must be positive"))
    adasum.set_timeout(world, 100)
    found("a timeout of the communicator", True)
    found("a report", reduced(rule="mean")[1]["contributions"] == size)


if __name__ == "__main__":
    main()
