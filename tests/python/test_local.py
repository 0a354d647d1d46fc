# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls on one process."""

import copy
import gc
import json
import math
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

import numpy
import pytest

import adasum


def exact_pair(a, b):
    """The formula, in double."""
    a, b = a.astype("f8"), b.astype("f8")
    return (1 - a @ b / (2 * a @ a)) * a + (1 - a @ b / (2 * b @ b)) * b


@pytest.mark.parametrize("dtype, tolerance", [("f8", 1e-14), ("f4", 1e-6), ("f2", 2e-3)])
def test_pair(random, dtype, tolerance):
    a, b = (random.normal(size=100).astype(dtype) for _ in range(2))
    before = a.copy(), b.copy()
    result = adasum.pair(a, b)
    assert result.dtype == a.dtype
    numpy.testing.assert_allclose(result, exact_pair(a, b), rtol=0, atol=tolerance * numpy.abs(a).max())
    assert (a == before[0]).all() and (b == before[1]).all()


def test_pair_of_segments_and_in_place(random):
    a, b = random.normal(size=(2, 10))
    expected = numpy.concatenate([exact_pair(a[:7], b[:7]), exact_pair(a[7:], b[7:])])
    assert adasum.pair(a, b, out=a, segments=numpy.array([7, 3])) is a
    numpy.testing.assert_allclose(a, expected, rtol=1e-14)


def test_arrays_of_several_dimensions(random):
    a, b = random.normal(size=(2, 4, 5))
    assert adasum.pair(a, b).shape == (4, 5)
    numpy.testing.assert_allclose(adasum.pair(a, b).ravel(), exact_pair(a.ravel(), b.ravel()), rtol=1e-14)
    numpy.testing.assert_allclose(adasum.pair(a.T, b.T), adasum.pair(a, b).T, rtol=1e-14)  # contiguous, too
    row = numpy.asfortranarray(a[:1])  # of one row, both orders are the same
    numpy.testing.assert_allclose(adasum.pair(a[:1].copy(), row, out=row), a[:1], rtol=1e-14)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("other, message", [
    (lambda a: numpy.asfortranarray(a), "array 0 is in .* order, .* in .* order .strides"),
    (lambda a: a.reshape(3, 2), r"array 0 has the shape \(., .\), .* has \(., .\)"),
    (lambda a: a.reshape(6), "array 0 has the shape .*6,"),
    (lambda a: a.reshape(1, 2, 3), "array 0 has the shape .*1, 2, 3"),
])
def test_arrays_of_other_shapes_or_orders(random, place, other, message):
    for call in (lambda a, b, out: adasum.pair(a, b, out), lambda *arrays: adasum.combine(arrays[:2], arrays[2], rule="mean")):
        arrays = [random.normal(size=(2, 3)) for _ in range(3)]
        arrays[place] = other(arrays[place])
        before = [array.copy() for array in arrays]
        with pytest.raises(adasum.BadInput, match=message):
            call(*arrays)
        for array, old in zip(arrays, before):
            numpy.testing.assert_array_equal(array, old)


def test_no_elements():
    assert adasum.pair(numpy.empty(0), numpy.empty(0)).size == 0


def test_bfloat16():
    torch = pytest.importorskip("torch")
    a, b = torch.tensor([1.0, 0.0], dtype=torch.bfloat16), torch.tensor([0.0, 2.0], dtype=torch.bfloat16)
    out = torch.zeros(2, dtype=torch.bfloat16)
    assert adasum.pair(a, b, out=out) is out and out.tolist() == [1, 2]
    with pytest.raises(adasum.BadInput, match="numpy has no bfloat16"):
        adasum.pair(a, b)

    with pytest.raises(adasum.BadInput, match="meta"):
        adasum.pair(torch.empty(2, device="meta"), torch.empty(2, device="meta"))


def test_tree_and_report():
    a, b, c = numpy.eye(3)
    result, report = adasum.tree([a, b, c])
    numpy.testing.assert_allclose(result, [1, 1, 1])
    assert report["contributions"] == 3 and report["rule"] == "adasum"
    assert report["orthogonality"] == pytest.approx(1)
    assert adasum.tree([a, a, a])[1]["orthogonality"] == pytest.approx(1 / 3)
    assert re.fullmatch(r"adasum\.Report\('\{.*\}'\)", repr(report))


def test_report_is_a_mapping():
    _, report = adasum.tree(numpy.eye(3))
    expected = json.loads(report.json())
    assert isinstance(report, Mapping) and dict(report) == report.to_dict() == expected and report == expected
    assert list(report) == list(report.keys()) == list(expected) and len(report) == len(expected) > 5
    assert "rule" in report and "colour" not in report
    assert list(report.values()) == list(expected.values()) and list(report.items()) == list(expected.items())
    assert report.get("rule") == "adasum" and report.get("colour", 7) == 7
    with pytest.raises(KeyError, match="colour"):
        report["colour"]
    report.to_dict()["rule"] = "changed"
    assert report["rule"] == "adasum"
    with pytest.raises(TypeError):
        report["rule"] = "changed"


def through_pickle(report):
    return pickle.loads(pickle.dumps(report))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, through_pickle, lambda report: adasum.Report(report.json())])
@pytest.mark.parametrize("was_read", [False, True])
def test_copies_of_reports(copied, was_read):
    """Each lives without the other."""
    _, report = adasum.tree(numpy.eye(3))
    expected = adasum.tree(numpy.eye(3))[1].to_dict()
    if was_read:
        assert report == expected
    other = copied(report)
    assert type(other) is adasum.Report and other is not report
    del other
    gc.collect()
    assert report == expected
    other = copied(report)
    del report
    gc.collect()
    adasum.tree(2 * numpy.eye(3))  # which takes the place of the one that is gone
    assert other == expected and repr(other) == f"adasum.Report({other.json()!r})"


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("wrong", [(), (1, 2, 3)])
def test_reports_are_made_of_texts(wrong):
    with pytest.raises(TypeError):
        adasum.Report(*wrong)
    for text in ("", "rule", "{", "[]", "3", "\0", None, 7, b"{}", "[" * 100_000):
        with pytest.raises(adasum.BadInput, match="the text is not a report"):
            adasum.Report(text)
    gc.collect()


@pytest.mark.parametrize("rule", adasum.rules())
def test_rules(random, rule):
    gradients = list(random.normal(size=(7, 20)))
    if rule == "nearest_neighbour_mixing":
        rule += ":byzantine=1,rule=multi_krum:byzantine=1,selected=3"
    result, report = adasum.combine(gradients, rule=rule, segments=[12, 8])
    weights = numpy.array(report["weights"])  # by segment
    rows = weights if len(weights) == 2 else numpy.repeat(weights, 2, 0)
    expected = numpy.concatenate([rows[0] @ numpy.array(gradients)[:, :12], rows[1] @ numpy.array(gradients)[:, 12:]])
    numpy.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


def test_parameters_and_options(random):
    gradients = list(random.normal(size=(3, 5)))
    gradients[1][2] = math.nan
    result, report = adasum.combine(gradients, rule="mean", nonfinite="exclude")
    numpy.testing.assert_allclose(result, (gradients[0] + gradients[2]) / 2)
    assert report["excluded"] == [1]
    with pytest.raises(adasum.NonfiniteError, match="1"):
        adasum.combine(gradients, nonfinite="raise")
    near, _ = adasum.combine([g * 1e3 for g in numpy.eye(3)], rule="centred_clipping:radius=0.5")
    far, _ = adasum.combine([g * 1e3 for g in numpy.eye(3)], rule="centred_clipping:radius=5000")
    assert numpy.linalg.norm(near) < numpy.linalg.norm(far)


@pytest.mark.parametrize("call, message", [
    (lambda a: adasum.pair(a, a[:2]), r"array 0 has the shape \(4,\), array 1 has \(2,\)"),
    (lambda a: adasum.pair(a, a.astype("f8")), "different element types"),
    (lambda a: adasum.pair(a[::2], a[::2]), "gaps between its elements"),
    (lambda a: adasum.pair(a.astype("i4"), a.astype("i4")), "holds int32"),
    (lambda a: adasum.pair(a.astype(">f4"), a.astype(">f4")), "byte order"),
    (lambda a: adasum.pair([1.0], [2.0]), "not list"),
    (lambda a: adasum.pair(numpy.ma.masked_equal(a, 1), a), "the array is masked"),
    (lambda a: adasum.pair(a, a, segments=[3]), "segments hold 3"),
    (lambda a: adasum.pair(a, a, segments=[5, -1]), "a segment has the length -1"),
    (lambda a: adasum.pair(a, a, segments=[2.5, 1.5]), "not a list of integers"),
    (lambda a: adasum.pair(a, a, segments=4), "not a list of integers"),
    (lambda a: adasum.pair(a, a, out=numpy.broadcast_to(a[:1], 4)), "gaps|read-only"),
    (lambda a: adasum.combine([]), "the list of gradients is empty"),
    (lambda a: adasum.combine(3), "must be a list of arrays, not int"),
    (lambda a: adasum.combine([a], rule="no such"), "there is no rule 'no such'"),
    (lambda a: adasum.combine([a, a], rule="multi_krum:byzantine=-1"), "byzantine"),
    (lambda a: adasum.pair(a, a, segments=[True, 3]), "a bool is not a number"),
    (lambda a: adasum.pair(a, a, segments=numpy.ones(4, bool)), "a bool is not a number"),
    (lambda a: adasum.pair(a, a, segments=[4, 1 << 20000]), "a number of 20001 bits"),
    (lambda a: adasum.combine([a], rule=3), "the rule must be a string, not int"),
    (lambda a: adasum.combine([a], rule="mean\0xyz"), "contains a NUL character"),
    (lambda a: adasum.combine([a], rule="\ud800"), "cannot be encoded as UTF-8"),
    (lambda a: adasum.combine([a], wire="same\0"), "contains a NUL character"),
    (lambda a: adasum.combine([a], wire="\ud800"), "cannot be encoded as UTF-8"),
    (lambda a: adasum.combine([a], **{"wire\0": "same"}), "contains a NUL character"),
    (lambda a: adasum.combine([a], colour="red"), "colour"),
    (lambda a: adasum.combine([a], nonfinite="perhaps"), "perhaps"),
])
def test_bad_input(call, message):
    with pytest.raises(adasum.BadInput, match=message):
        call(numpy.ones(4, "f4"))


def test_read_only():
    a = numpy.ones(3)
    a.flags.writeable = False
    with pytest.raises(adasum.BadInput, match="read-only"):
        adasum.pair(a, a, out=a)
    numpy.testing.assert_allclose(adasum.pair(a, a), a)  # as an input it may be


def test_errors_have_usual_bases():
    assert issubclass(adasum.BadInput, ValueError) and issubclass(adasum.TimeoutError, adasum.CommunicationError)
    assert adasum.BadInput.__module__ == "adasum"


def test_errors_repeat_also_what_is_no_text():
    environment = {**os.environ, "ADASUM_ISA": "\udcff"}  # the byte 255
    found = subprocess.run([sys.executable, "-m", "adasum"], env=environment, stdout=subprocess.PIPE, text=True)
    assert found.returncode == 1
    assert found.stdout.count(r"ADASUM_ISA is '\xff'") == 3  # what the package is, and two tests


def test_other_threads_run_meanwhile():
    gradients = list(numpy.ones((8, 1 << 21), "f4"))
    turns, ends = 0, threading.Event()

    def count():
        nonlocal turns
        while not ends.is_set():
            turns += 1
            time.sleep(0)

    other = threading.Thread(target=count)
    other.start()
    during = []
    while len(during) < 20 and max(during, default=0) <= 10:  # on a busy machine, the other may get no processor for a while
        before = turns
        adasum.tree(gradients)
        during.append(turns - before)
    ends.set()
    other.join()
    assert max(during) > 10
