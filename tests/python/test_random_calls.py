# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls with any arguments: each gives a result or an exception of adasum's, and the interpreter lives."""

import math

import numpy
import pytest

import adasum
from producers import Before1, Version1, is_copy, read_only

calls = 10_000
unreadable = "\0", "mean\0", "mean\0:byzantine=1", "same\0", "\ud800", "mean\udfff"
"""Rules and options that must never be taken"""


def require_readable(*texts):
    """Of a call that gave a result."""
    assert not set(unreadable) & set(map(str, texts)), f"taken: {texts}"


class Arguments:
    """Those of one call in two are right; of the others, some are."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)

    def begin_call(self):
        self.right = self.random.random() < 0.5
        self.dtype = self.one_of("f4", "f8", "f2")
        self.length = int(self.random.integers(0, 40))

    def one_of(self, *values):
        return values[self.random.integers(len(values))]

    def array(self):
        length = self.length
        if self.right:
            return self.random.normal(size=length).astype(self.dtype)
        length = max(0, length + self.one_of(0, 0, 0, 0, 1, -1))
        one = self.random.normal(size=2 * length).astype(self.one_of("f4", "f4", "f4", "f8", "f2", "i4", "c8", ">f4", "?"))
        kind = self.random.integers(12)
        if kind == 0:
            return one[::2]
        if kind == 1:
            return one[:length][::-1]
        if kind == 2:
            return numpy.broadcast_to(one[:1], length) if length else one
        if kind == 3:
            return self.one_of(None, 3, "text", [1.0, 2.0], b"12345678", memoryview(b"1234"), object())
        one = one[:length].copy()
        if kind == 4:
            one.flags.writeable = False
        if kind == 5 and length and one.dtype.kind == "f":
            one[self.random.integers(length)] = self.one_of(math.inf, -math.inf, math.nan)
        if kind == 6:
            one = numpy.frombuffer(b"\0" + one.tobytes(), one.dtype, length, 1)  # not at a multiple of its alignment
        if kind in (7, 8) and one.dtype.isnative:
            flags = self.one_of(0, read_only, is_copy)
            one = Before1(one) if kind == 7 else Version1(one, flags, self.one_of(1, 1, 2))
        return one

    def segments(self):
        length = self.length
        kind = self.random.integers(4 if self.right else 8)
        if kind < 4:
            cut = sorted(self.random.integers(0, length + 1, 3))
            return [int(n) for n in numpy.diff([0, *cut, length])]
        return self.one_of(None, [], [length], [length, 1], [-1, length + 1], [1 << 70], "ab", [0.5], [None], 7,
                           numpy.array([length]), (n for n in [length]), {length: 1})

    def rule(self):
        if self.right:
            return self.one_of("adasum", "mean", "sum", "geometric_median", "centred_clipping:radius=2", "upgrad")
        return self.one_of(*adasum.rules(), "adasum", "mean", "centred_clipping:radius=2", "centred_clipping:radius=-1",
                           "multi_krum:byzantine=99", "multi_krum:byzantine=1e99", "adasum:", ":", "", "ä", None, 7,
                           "x" * 5000, self.one_of(*unreadable))

    def options(self):
        if self.right:
            return self.one_of({}, {"nonfinite": "exclude"}, {"measure": "when_needed"})
        return self.one_of({}, {}, {"nonfinite": "exclude"}, {"nonfinite": "raise"}, {"wire": "bfloat16"},
                           {"measure": "when_needed"},
                           {"timeout": 1}, {"timeout": -1}, {"timeout": "nan"}, {"colour": "red"}, {"nonfinite": None},
                           {"nonfinite": 7}, {"check_agreement": True}, {"wire": "a,b=c"}, {"keep_plan": False},
                           {"wire": self.one_of(*unreadable)}, {self.one_of(*unreadable): "same"})


def one_call(given, comm):
    given.begin_call()
    call = given.random.integers(7 if comm else 3)
    if call == 0:
        adasum.pair(given.array(), given.array(), given.one_of(None, given.array()), segments=given.segments())
    elif call in (1, 2):
        gradients = [given.array() for _ in range(given.random.integers(given.right, 5))]
        out = given.one_of(None, None, given.array(), *gradients)
        if call == 1:
            options = given.options()
            adasum.tree(gradients, out, segments=given.segments(), **options)
            require_readable(*options, *options.values())
        else:
            gradients = gradients if given.right else given.one_of(gradients, gradients, None, 3)
            rule, options = given.rule(), given.options()
            adasum.combine(gradients, out, rule=rule, segments=given.segments(), **options)[1].to_dict()
            require_readable(rule, *options, *options.values())
    elif call == 3:
        rule, options = given.rule(), given.options()
        adasum.allreduce(given.array(), comm if given.right else given.one_of(comm, comm, None, 3, comm.__class__()),
                         segments=given.segments(), rule=rule, **options)
        require_readable(rule, *options, *options.values())
    elif call == 4:
        seconds = 60 if given.right else given.one_of("x", None, math.nan, -1, 0, math.inf, math.inf, 1 << 20000, True, 99,
                                                      numpy.float32(60), 60)
        adasum.set_timeout(comm, seconds)
        assert seconds >= 60, f"taken: {seconds}"
    else:
        lives_of_plan(given, comm)


def lives_of_plan(given, comm):
    count = given.length if given.right else given.one_of(given.length, numpy.int64(given.length), -1, 1 << 62, "3",
                                                               None, 2.5, True)
    dtype = given.dtype if given.right else given.one_of("float32", "f4", numpy.float64, "float16", "int8", None, "\0")
    rule, options = given.rule(), given.options()
    plan = adasum.Plan(comm, count, dtype, segments=given.segments(), rule=rule, **options)
    require_readable(rule, *options, *options.values())
    assert count is not True
    for _ in range(given.random.integers(3)):
        try:
            if given.random.integers(2):
                plan(given.array())
            else:
                plan.start(given.array())
                if given.random.integers(2):
                    plan.test()
                if given.random.integers(5):
                    plan.wait()
        except adasum.Error:
            if given.right:
                raise
    for _ in range(0 if given.right else given.random.integers(3)):
        given.one_of(plan.free, plan.wait, plan.test)()


@pytest.mark.parametrize("seed", range(4))
def test_random_calls(seed):
    try:
        from mpi4py import MPI

        comm = MPI.COMM_SELF
    except ImportError:
        comm = None
    given = Arguments(seed)
    worked = failed = 0
    made = calls // 4
    for _ in range(made):
        try:
            one_call(given, comm)
            worked += 1
        except (adasum.Error, MemoryError):  # of 2^62 elements
            failed += 1
    print(f"{worked} calls gave a result, {failed} an exception")
    assert worked > made / 10 and failed > made / 20
