# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries, as the C library takes them: numpy's, and whatever offers DLPack (tensors of PyTorch, JAX,
CuPy)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol, Union

import numpy

from ._dlpack import view_of
from ._errors import BadInput

_types = {"float64": 1, "float32": 2, "float16": 3, "bfloat16": 4}


class SupportsDLPack(Protocol):
    """An array that offers DLPack, of version 1 or earlier: __dlpack__ may know max_version, or not."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...


Array = Union[numpy.ndarray, SupportsDLPack]


def type_number(dtype: Any, call: str) -> int:
    """The number of an element type, which is given as a name, a type of numpy's, or one of PyTorch's."""
    name = str(dtype).rpartition(".")[2] if isinstance(dtype, str) or hasattr(dtype, "is_floating_point") else ""
    if name not in _types:
        try:
            name = numpy.dtype(dtype).name
        except TypeError:
            name = str(dtype)
    if name not in _types:
        raise BadInput(f"{call}: the dtype is {name}; it must be one of {', '.join(_types)}")
    return _types[name]


class Elements:
    """The memory of an array, which must be contiguous and in memory of the host."""

    __slots__ = ("address", "count", "type", "array", "_keep")

    def __init__(self, given: Array, call: str, *, written: bool = False) -> None:
        array, name = _as_numpy(given, call)
        if name not in _types:
            raise BadInput(f"{call}: the array holds {name}; gradients are float64, float32, float16 or bfloat16")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise BadInput(f"{call}: the array {_problem_of_strides(array)} (strides {array.strides}); give a contiguous copy")
        if not array.dtype.isnative:
            raise BadInput(f"{call}: the array does not have this machine's byte order; give a copy that does")
        if written and (not array.flags.writeable or _is_of(given, "jax", "Array")):  # JAX's DLPack does not say read-only
            raise BadInput(f"{call}: the array cannot take the result: it is read-only, or DLPack gave only a copy of it")
        self.array, self._keep = array, given
        self.address, self.count, self.type = array.__array_interface__["data"][0], array.size, _types[name]

    def require_type(self, number: int, call: str) -> None:
        if self.type != number:
            names = {one: name for name, one in _types.items()}
            raise BadInput(f"{call}: the array holds {names[self.type]}, but the plan is for {names[number]}")

    @property
    def order(self) -> str:
        """Of two arrays of the same shape, either both are in both orders at once, or neither is."""
        return "C" if self.array.flags.c_contiguous else "Fortran"


def require_alike(arrays: Sequence[Elements], out: Elements, call: str) -> None:
    """All have one type, one shape and one order: elements at the same place in memory are combined."""
    first = arrays[0]
    for name, one in [*((f"array {number}", one) for number, one in enumerate(arrays)), ("out", out)]:
        if one.array.shape != first.array.shape:
            raise BadInput(f"{call}: array 0 has the shape {first.array.shape}, {name} has {one.array.shape}")
        if one.type != first.type:
            raise BadInput(f"{call}: array 0 and {name} have different element types")
        if one.order != first.order:
            raise BadInput(f"{call}: array 0 is in {first.order} order, {name} in {one.order} order (strides "
                           f"{first.array.strides} and {one.array.strides})")


def _as_numpy(given: Any, call: str) -> tuple[numpy.ndarray, str]:
    """A view as an array of numpy's, and the name of its element type. bfloat16 travels as 16-bit integers."""
    if isinstance(given, numpy.ma.MaskedArray):
        raise BadInput(f"{call}: the array is masked, and masks would be ignored; give its data, such as array.filled(0)")
    if isinstance(given, numpy.ndarray):
        return given, given.dtype.name
    if type(given).__module__.partition(".")[0] == "torch" or _is_of(given, "torch", "Tensor"):
        return _torch_as_numpy(given, call)
    if hasattr(given, "__dlpack__"):
        try:
            return view_of(given)
        except Exception as problem:  # of the producer's
            raise BadInput(f"{call}: the array cannot be read in place by DLPack: {problem}") from problem
    if hasattr(given, "__cuda_array_interface__"):
        raise BadInput(f"{call}: the array is in the memory of a CUDA device (__cuda_array_interface__); this call takes host "
                       "memory only: give a copy there, or the array as a tensor of PyTorch to adasum.torch")
    raise BadInput(f"{call}: expected a numpy array or an object that offers DLPack, not {type(given).__name__}")


def _problem_of_strides(array: numpy.ndarray) -> str:
    """Of an array in neither C's nor Fortran's order."""
    without_gaps = end = array.itemsize
    has_gaps = False
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape) if size != 1):
        if stride < end:
            return "has elements that share memory, or lie in the gaps between others"
        has_gaps = has_gaps or stride != without_gaps
        without_gaps *= size
        end += stride * (size - 1)
    return "has gaps between its elements" if has_gaps else "lies in memory in an order that is neither C's nor Fortran's"


def _is_of(given: Any, library: str, kind: str) -> bool:
    """Whether it is an object of this class of a library, or of one derived from it."""
    module = sys.modules.get(library)
    return module is not None and isinstance(given, getattr(module, kind, ()))


def problem_of_tensor_class(kind: type) -> str:
    """What is wrong with tensors of this class of PyTorch's; empty if nothing."""
    import torch

    def functions(one: type) -> list[Any]:
        found = [getattr(one, name) for name in ("__torch_function__", "__torch_dispatch__")]
        return [getattr(function, "__func__", function) for function in found]  # of methods that are bound to the class

    if functions(kind) in (functions(torch.Tensor), functions(torch.nn.Parameter)):
        return ""
    return (f"the tensor is a {kind.__name__}, whose elements need not be what lies in its memory; give the plain tensor that it "
            "stands for")


def _torch_as_numpy(tensor: Any, call: str) -> tuple[numpy.ndarray, str]:
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise BadInput(f"{call}: expected an array or a tensor, not {type(tensor).__name__}")
    problem = problem_of_tensor_class(type(tensor))
    if problem:
        raise BadInput(f"{call}: {problem}")
    if tensor.device.type != "cpu":
        raise BadInput(f"{call}: the tensor is on {tensor.device}; this call takes tensors in host memory only")
    if tensor.layout != torch.strided:
        raise BadInput(f"{call}: the tensor is not dense; give it as tensor.to_dense()")
    name = str(tensor.dtype).removeprefix("torch.")
    try:
        if tensor._is_zerotensor():
            raise RuntimeError("PyTorch keeps no memory for its zeros; use tensor.clone()")
        tensor = tensor.detach()
        memory = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        if tensor.numel() and memory.nbytes() < (last + 1) * tensor.element_size():
            raise RuntimeError("its memory is shorter than the tensor, or has been freed")
        return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy(), name
    except (RuntimeError, TypeError) as wrong:
        raise BadInput(f"{call}: the tensor cannot be read in place: {wrong}") from wrong
