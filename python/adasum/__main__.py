# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m adasum: says what this package is, and tests it on a few small gradients; mpirun -n N python -m adasum --mpi: among
ranks, too. Exits 1 if a test has failed."""

from __future__ import annotations

import argparse
import sys

import numpy

import adasum

_lengths = [5, 0, 1000, 123]


def _expected(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    """The pair's formula in numpy."""
    cut = numpy.cumsum(_lengths)[:-1]
    return numpy.concatenate([(1 - x @ y / (2 * max(x @ x, 1e-300))) * x + (1 - x @ y / (2 * max(y @ y, 1e-300))) * y
                              for x, y in zip(numpy.split(a, cut), numpy.split(b, cut))])


def _gradient(seed: int) -> numpy.ndarray:
    return numpy.random.default_rng(seed).normal(size=sum(_lengths)) + 0.5


def _test_pair() -> None:
    a, b = _gradient(1), _gradient(2)
    for kind, tolerance in (("f8", 1e-13), ("f4", 1e-5), ("f2", 1e-2)):
        found = adasum.pair(a.astype(kind), b.astype(kind), segments=_lengths)
        numpy.testing.assert_allclose(found, _expected(a, b), rtol=tolerance, atol=tolerance)


def _test_rules() -> None:
    gradients = [_gradient(seed) for seed in range(3)]
    for rule, expected in (("sum", sum(gradients)), ("mean", sum(gradients) / 3)):
        numpy.testing.assert_allclose(adasum.combine(gradients, rule=rule)[0], expected, rtol=1e-13, atol=1e-13)
    numpy.testing.assert_allclose(adasum.tree([gradients[0]] * 3)[0], gradients[0], rtol=1e-13)


def _test_ranks() -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    mine = _gradient(world.rank)
    adasum.allreduce(mine, world, segments=_lengths)
    all_of_them = world.allgather(mine.tobytes())  # before one of them may leave
    expected = adasum.tree([_gradient(seed) for seed in range(world.size)], segments=_lengths)[0]
    numpy.testing.assert_allclose(mine, expected, rtol=1e-12, atol=1e-12)
    if len(set(all_of_them)) != 1:
        raise AssertionError("the ranks have different bits")


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m adasum", description="Says what this package is, and tests it.")
    parser.add_argument("--mpi", action="store_true", help="test it among the ranks of MPI, too")
    tests = [_test_pair, _test_rules]
    shows, failed = True, 0
    if parser.parse_args().mpi:
        from mpi4py import MPI

        tests.append(_test_ranks)
        shows = MPI.COMM_WORLD.rank == 0
    if shows:
        adasum.show_config()
    for test in tests:
        try:
            test()
            result = "passed"
        except Exception as problem:
            result = f"FAILED: {type(problem).__name__}: {problem}"
            failed = 1
        if shows or failed:
            print(f"self-test of {test.__name__[6:]}: {result}")
    return failed


if __name__ == "__main__":
    sys.exit(_main())
