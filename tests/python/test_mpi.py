# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Among the ranks of MPI: mpirun -n N python3 -m pytest test_mpi.py"""

import math

import numpy
import pytest
from mpi4py import MPI

import adasum

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def gradients_of_all(length, dtype="f4"):
    return [numpy.random.default_rng(r).normal(size=length).astype(dtype) for r in range(size)]


@pytest.mark.parametrize("dtype, tolerance", [("f8", 1e-13), ("f4", 1e-5), ("f2", 1e-2)])
@pytest.mark.parametrize("rule", ["adasum", "mean", "geometric_median"])
def test_allreduce(rule, dtype, tolerance):
    gradients = gradients_of_all(1000, dtype)
    expected, _ = adasum.combine(gradients, rule=rule, segments=[600, 400])
    mine = gradients[rank].copy()
    report = adasum.allreduce(mine, world, segments=[600, 400], rule=rule)
    numpy.testing.assert_allclose(mine.astype("f8"), expected.astype("f8"), atol=tolerance * 4, rtol=0)
    assert report["rule"] == rule and report["contributions"] == size
    assert len(set(world.allgather(mine.tobytes()))) == 1  # the same bits on all ranks


def test_tensors_and_wire():
    torch = pytest.importorskip("torch")
    mine = torch.full((500,), float(rank + 1))
    report = adasum.allreduce(mine, world, rule="mean", wire="bfloat16")
    assert mine[0].item() == pytest.approx((size + 1) / 2, rel=1e-2) and (mine == mine[0]).all()
    assert report["wire"] in ("bfloat16", "same")  # in memory that ranks share
    mine = torch.ones(10, dtype=torch.bfloat16)
    adasum.allreduce(mine, world)
    assert (mine == 1).all()


def test_plan():
    gradients = gradients_of_all(100)
    expected, _ = adasum.tree(gradients)
    with adasum.Plan(world, 100, numpy.float32) as plan:
        for _ in range(3):
            mine = gradients[rank].copy()
            assert plan(mine)["contributions"] == size
            numpy.testing.assert_allclose(mine, expected, atol=1e-5)
        mine = gradients[rank].copy()
        plan.start(mine)
        while not plan.test():
            pass
        plan.wait()
        numpy.testing.assert_allclose(mine, expected, atol=1e-5)
    with pytest.raises(adasum.BadInput, match="plan"):
        plan(mine)


@pytest.mark.parametrize("call", ["allreduce", "plan", "new plan"])
@pytest.mark.parametrize("wrong", [lambda a: a[::2], lambda a: a.astype("i4"), lambda a: None])
def test_what_one_rank_does_wrong_all_hear(call, wrong):
    comm = world.Dup()
    good = numpy.ones(64, "f4")
    mine = wrong(good) if rank == size - 1 else good

    if call == "new plan":
        def run(array):
            return adasum.Plan(comm, array.size if array is good else -1)
    else:
        run = adasum.Plan(comm, 64) if call == "plan" else lambda array: adasum.allreduce(array, comm)
        run(good)
    with pytest.raises(adasum.BadInput if rank == size - 1 else adasum.Error):
        run(mine)
    assert (good == 1).all()
    run(good)  # and afterwards all is well
    if call == "plan":
        run.free()
    comm.Free()


def test_agreement():
    if size == 1:
        return
    with pytest.raises(adasum.AgreementError, match="rank"):
        adasum.allreduce(numpy.ones(10 + (rank == 0), "f4"), world, check_agreement=True)


def test_nonfinite():
    mine = numpy.ones(10)
    if rank == size - 1:
        mine[3] = math.inf
    before = mine.copy()
    with pytest.raises(adasum.NonfiniteError):
        adasum.allreduce(mine, world, nonfinite="raise")
    assert (mine == before).all()
    if size > 1:
        report = adasum.allreduce(mine, world, nonfinite="exclude")
        assert (mine == 1).all() and report["excluded"] == [size - 1]


def test_communicators():
    with pytest.raises(adasum.BadInput, match="not a communicator of mpi4py's, but int"):
        adasum.allreduce(numpy.ones(3), 3)
    with pytest.raises(adasum.BadInput, match="MPI_COMM_NULL"):
        adasum.allreduce(numpy.ones(3), MPI.COMM_NULL)
    with pytest.raises(adasum.BadInput, match="timeout"):
        adasum.set_timeout(world, -1)
    half = world.Split(rank % 2, rank)
    mine = numpy.full(8, 1.0 + rank % 2)
    adasum.allreduce(mine, half)
    numpy.testing.assert_allclose(mine, 1.0 + rank % 2)
    half.Free()
