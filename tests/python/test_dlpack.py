# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays by DLPack, on one process."""

import gc

import numpy
import pytest

import adasum
from producers import Before1, Version1, Wrapped, is_copy, read_only

both = pytest.mark.parametrize("make", [Before1, Version1])


@both
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_in_place(make, dtype):
    a, b = numpy.array([1, 0], dtype), numpy.array([0, 2], dtype)
    out = make(a)
    assert adasum.pair(out, make(b), out=out) is out
    assert a.tolist() == [1, 2] and b.tolist() == [0, 2]
    assert adasum.tree([make(a), make(a), make(a)], out)[1]["orthogonality"] == pytest.approx(1 / 3)
    assert a.tolist() == [1, 2]


@both
def test_result_of_its_own(make):
    a = numpy.array([[3.0, 4.0]])
    result = adasum.pair(make(a), make(a))
    assert result.tolist() == [[3, 4]] and not numpy.shares_memory(result, a)


@both
def test_each_capsule_is_freed_once(make):
    """By whom it was made, when the call is over, as it was not taken over."""
    one, wrong = make(numpy.ones(4), counts=True), make(numpy.ones(4, "i4"), counts=True)
    adasum.tree([one, one], one)
    with pytest.raises(adasum.BadInput):
        adasum.pair(wrong, one)
    gc.collect()
    assert one.made == one.gone == 3 and wrong.made == wrong.gone == 1


def test_read_only():
    one, a = Version1(numpy.ones(4), flags=read_only), numpy.ones(4)
    assert adasum.pair(one, a).tolist() == [1] * 4  # as an input it may be
    for flags in (read_only, is_copy, read_only | is_copy):
        with pytest.raises(adasum.BadInput, match="read-only, or DLPack gave only a copy"):
            adasum.pair(a, a, out=Version1(numpy.ones(4), flags=flags))


@both
def test_shapes_and_orders(make):
    a = numpy.arange(6.0).reshape(2, 3)
    columns = numpy.asfortranarray(a)
    assert adasum.pair(make(a), make(a), make(a)).array.tolist() == a.tolist()
    assert adasum.pair(make(columns), make(columns)).tolist() == a.tolist()
    with pytest.raises(adasum.BadInput, match="order"):
        adasum.pair(make(a), make(columns))
    with pytest.raises(adasum.BadInput, match="gaps"):
        adasum.pair(make(a[:, :2]), make(a[:, :2]))
    assert adasum.pair(make(a, strides=None), make(a, strides=None)).tolist() == a.tolist()  # in C's order
    whole, part = numpy.arange(4.0), numpy.ones(2)
    assert adasum.pair(make(part), make(part), make(whole, shape=make(part)._tensor().shape, byte_offset=16)) is not None
    assert whole.tolist() == [0, 1, 1, 1]
    assert adasum.pair(make(numpy.ones(())), make(numpy.ones(()))) == 1
    assert adasum.pair(make(numpy.ones((0, 3)), data=None), make(numpy.ones((0, 3)))).shape == (0, 3)


def strided(shape, strides):
    return numpy.lib.stride_tricks.as_strided(numpy.ones(16), shape, [8 * stride for stride in strides])


@pytest.mark.parametrize("array, message", [
    (numpy.ones((2, 3, 4)).transpose(1, 0, 2), "neither C's nor Fortran's"),
    (numpy.ones(4)[::-1], "neither C's nor Fortran's"),
    (numpy.ones((2, 3))[::-1], "neither C's nor Fortran's"),
    (numpy.ones((2, 3, 4))[:, :, ::2].transpose(1, 0, 2), "has gaps"),
    (numpy.ones(8)[::-2], "has gaps"),
    (numpy.broadcast_to(numpy.ones(3), (2, 3)), "share memory"),
    (strided((2, 2), (1, 1)), "share memory"),
    (strided((2, 3), (3, 2)), "lie in the gaps between others"),
])
@pytest.mark.parametrize("make", [lambda array: array, Before1])
def test_what_is_wrong_with_the_order(array, message, make):
    with pytest.raises(adasum.BadInput, match=message):
        adasum.pair(make(array), numpy.ones(array.shape))


def test_orders_that_make_no_difference():
    for array in (strided((1, 4, 1), (7, 1, 5)), numpy.ones((0, 3))[:, ::-2], numpy.ones((3, 1)).transpose(1, 0)[::-1]):
        assert adasum.pair(array, array).tolist() == numpy.ones(array.shape).tolist()


@both
def test_bfloat16(make):
    one = make(numpy.array([0x3F80, 0x4000], "i2"), kind=4)  # 1 and 2
    assert adasum.pair(one, one, out=one) is one and one.array.tolist() == [0x3F80, 0x4000]
    with pytest.raises(adasum.BadInput, match="numpy has no bfloat16"):
        adasum.pair(one, one)


class Raises:
    def __dlpack__(self, *, stream=None):
        raise KeyError("mine")


class NoCapsule:
    def __dlpack__(self, **_):
        return 3


class OfNumba:
    __cuda_array_interface__ = {"shape": (4,), "typestr": "<f8", "data": (4096, False), "version": 3}


@pytest.mark.parametrize("wrong, message", [
    (Before1(numpy.ones(4), device=(2, 0)), "on a device .*type 2"),
    (OfNumba(), "memory of a CUDA device .__cuda_array_interface__"),
    (Before1(numpy.ones(4, "i4")), "holds int32"),
    (Before1(numpy.ones(4, "?"), lanes=4), "holds bool8 x 4"),
    (Before1(numpy.ones(4), lanes=2), "holds float64 x 2"),
    (Before1(numpy.ones(4), data=None), "its data pointer is null"),
    (Before1(numpy.ones(4), kind=99), "DLPack's type 99 of 64"),
    (Version1(numpy.ones(4), major=2), "version 2 of DLPack"),
    (Raises(), "mine"),
    (NoCapsule(), "no DLPack capsule"),
])
def test_bad_input(wrong, message):
    with pytest.raises(adasum.BadInput, match=message):
        adasum.pair(wrong, numpy.ones(4))


@pytest.mark.parametrize("knows_version", [False, True])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_of_libraries(library, knows_version):
    a = pytest.importorskip(library).ones(4)
    a[0] = 0
    one = Wrapped(a, knows_version)
    assert adasum.pair(one, numpy.array([1, 0, 0, 0], str(a.dtype).replace("torch.", "")), out=one) is one
    assert a.tolist() == [1] * 4


def torch_tensors():
    """What PyTorch shows otherwise than memory holds it, or what has no memory."""
    import torch

    class Plain(torch.Tensor):
        pass

    class Scaled(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), named=None):
            raise KeyError("of the class itself")

    def freed(dtype):
        one = torch.ones(4, dtype=dtype)
        (one.untyped_storage() if hasattr(one, "untyped_storage") else one.storage()).resize_(0)
        return one

    return {
        "negative": (torch._neg_view(torch.ones(4)), "negative bit"),
        "negative bfloat16": (torch._neg_view(torch.ones(4, dtype=torch.bfloat16)), "negative bit"),
        "negative of a class": (torch._neg_view(torch.ones(4)).as_subclass(Plain), "negative bit"),
        "conjugate": (torch.ones(4, dtype=torch.complex64).conj(), "conjugate bit"),
        "class with functions": (torch.ones(4).as_subclass(Scaled), "is a Scaled"),
        "zero": (torch._efficientzerotensor(4), "no memory for its zeros"),
        "freed": (freed(torch.float32), "has been freed"),
        "freed bfloat16": (freed(torch.bfloat16), "has been freed"),
        "expanded": (torch.ones(1).expand(4), "share memory"),
        "meta": (torch.ones(4, device="meta"), "on meta"),
        "sparse": (torch.ones(4).to_sparse(), "not dense"),
    }


@pytest.mark.parametrize("kind", ["negative", "negative bfloat16", "negative of a class", "conjugate", "class with functions",
                                  "zero", "freed", "freed bfloat16", "expanded", "meta", "sparse"])
def test_tensors_that_are_not_their_memory(kind):
    torch = pytest.importorskip("torch")
    wrong, message = torch_tensors()[kind]
    with pytest.raises(adasum.BadInput, match=message):
        adasum.pair(wrong, torch.ones(4), torch.ones(4))


def test_tensors_that_are():
    torch = pytest.importorskip("torch")
    one = torch.ones(6, requires_grad=True)
    for tensor in (one, one * 1, torch.nn.Parameter(torch.ones(6)), one.detach().as_subclass(type("Plain", (torch.Tensor,), {}))):
        assert adasum.pair(tensor, tensor, torch.zeros(6)).tolist() == [1] * 6
