# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Among the ranks of MPI: mpirun -n N python3 -m pytest test_mpi.py"""

import math

import numpy
import pytest
from mpi4py import MPI

import adasum
from producers import Before1, Version1

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


def test_reports_travel():
    """A pickled report is the one it was, whatever reports there are where it arrives."""
    comm = world.Split(rank, 0)  # each rank's own
    report = adasum.allreduce(numpy.array([3.0, 4.0]) * (rank + 1), comm)
    assert [r["norms"] for r in world.allgather(report)] == [[[5.0 * (r + 1)]] for r in range(size)]
    assert report["norms"] == [[5.0 * (rank + 1)]]
    comm.Free()


def test_tensors_and_wire():
    torch = pytest.importorskip("torch")
    mine = torch.full((500,), float(rank + 1))
    report = adasum.allreduce(mine, world, rule="mean", wire="bfloat16")
    assert mine[0].item() == pytest.approx((size + 1) / 2, rel=1e-2) and (mine == mine[0]).all()
    assert report["wire"] in ("bfloat16", "same")  # in memory that ranks share
    mine = torch.ones(10, dtype=torch.bfloat16)
    adasum.allreduce(mine, world)
    assert (mine == 1).all()


@pytest.mark.parametrize("make", [Before1, Version1])
def test_dlpack(make):
    """In place, and freed when the call or the run is over, not before."""
    mine = make(numpy.full(500, rank + 1.0), counts=True)
    adasum.allreduce(mine, world, rule="mean")
    assert (mine.array == (size + 1) / 2).all() and mine.made == mine.gone == 1
    with adasum.Plan(world, 500, "float64") as plan:
        plan.start(mine)
        assert (mine.made, mine.gone) == (2, 1)
        plan.wait()
        assert (mine.array == (size + 1) / 2).all() and mine.made == mine.gone == 2


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
@pytest.mark.parametrize("check_agreement", [False, True])
@pytest.mark.parametrize("wrong, words", [(lambda a: a[::2], "has gaps"), (lambda a: a.astype("i4"), "holds int32"),
                                          (lambda a: None, "expected a numpy array")])
def test_what_one_rank_does_wrong_all_hear(call, check_agreement, wrong, words):
    comm = world.Dup()
    good = numpy.ones(64, "f4")
    mine = wrong(good) if rank == size - 1 else good

    if call == "new plan":
        def run(array):
            return adasum.Plan(comm, array.size if array is good else -1, check_agreement=check_agreement)
    elif call == "plan":
        run = adasum.Plan(comm, 64, check_agreement=check_agreement)
        run(good)
    else:
        def run(array):
            return adasum.allreduce(array, comm, check_agreement=check_agreement)
    with pytest.raises(adasum.Error) as raised:
        run(mine)
    heard = adasum.AgreementError if check_agreement else adasum.CommunicationError
    assert type(raised.value) is (adasum.BadInput if rank == size - 1 else heard)
    if rank == size - 1 or check_agreement:
        assert ("number of elements" if call == "new plan" else words) in str(raised.value)
        assert str(raised.value).count("adasum") == 1 and "type 0" not in str(raised.value), raised.value
    assert (good == 1).all()
    run(good)  # and afterwards all is well
    if call == "plan":
        run.free()
    comm.Free()


@pytest.mark.parametrize("call", [lambda comm, **named: adasum.allreduce(numpy.ones(64, "f4"), comm, **named),
                                  lambda comm, **named: adasum.Plan(comm, 64, **named)])
@pytest.mark.parametrize("check_agreement", [False, True])
@pytest.mark.parametrize("wrong", [{"rule": "mean\0"}, {"rule": "\ud800"}, {"rule": 3}, {"nonfinite": "raise\0"},
                                   {"nonfinite": "\ud800"}, {"\0": 1}, {"segments": [True] * 64}])
def test_what_others_hear_of_wrong_texts(call, check_agreement, wrong):
    comm = world.Dup()
    adasum.set_timeout(comm, 30)  # which none waits for
    bad = rank == size - 1
    heard = adasum.AgreementError if check_agreement else adasum.CommunicationError
    with pytest.raises(adasum.Error) as raised:
        call(comm, check_agreement=check_agreement, **(wrong if bad else {}))
    assert type(raised.value) is (adasum.BadInput if bad else heard)
    adasum.allreduce(numpy.ones(4), comm)
    comm.Free()


def test_an_exception_without_a_text_is_told_to_others():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    def segments():
        yield 32
        raise Silent

    comm = world.Dup()
    adasum.set_timeout(comm, 30)  # which none waits for
    bad = rank == size - 1
    with pytest.raises(Silent if bad else adasum.AgreementError):
        adasum.allreduce(numpy.ones(64), comm, check_agreement=True, segments=segments() if bad else None)
    adasum.allreduce(numpy.ones(4), comm)
    comm.Free()


def test_numbers():
    comm = world.Dup()
    for count in (numpy.int64(8), numpy.array(8), 8):
        adasum.Plan(comm, count).free()
    for count in (True, numpy.bool_(True), 8.0, "8", None, -1, 1 << 63, 1 << 20000):
        with pytest.raises(adasum.BadInput, match="number of elements"):
            adasum.Plan(comm, count)
    for seconds in ("x", "3", None, 2j, True, 1 << 20000, math.nan, 0, -1, -math.inf):
        with pytest.raises(adasum.BadInput, match="timeout"):
            adasum.set_timeout(comm, seconds)
    for seconds in (numpy.float32(60), 60, math.inf):
        adasum.set_timeout(comm, seconds)
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
    with pytest.raises(adasum.BadInput, match="must be an mpi4py.MPI.Comm, not int"):
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
