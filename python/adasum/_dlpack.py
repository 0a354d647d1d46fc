# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of libraries that offer DLPack (dlpack/dlpack.h, version 1), read in place. numpy.from_dlpack reads them as well, but
makes them read-only where the producer speaks a version of DLPack that cannot say what may be written, and it has no
bfloat16."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any

import numpy

_is_valid = ctypes.PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

_in_host_memory = (1, 3, 11, 13)  # the host's own, and what CUDA or ROCm have pinned there, or move there
_kinds = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_formats = {"float64": "f8", "float32": "f4", "float16": "f2", "bfloat16": "i2"}
_read_only, _is_copy = 1, 2  # flags


class _Tensor(ctypes.Structure):
    """DLTensor"""

    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("kind", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned. Of a later major version, no more than the first number may be read."""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", _Tensor)]


class _View:
    """What numpy reads as an array. It keeps the capsule, which keeps the producer's memory: a capsule that nobody has taken
    over frees what it holds when it goes. So nothing is to be freed here, whatever happens."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self._capsule, self.__array_interface__ = capsule, interface


def view_of(given: Any) -> tuple[numpy.ndarray, str]:
    """A view of the same memory as an array of numpy's, and the name of its element type. bfloat16 travels as 16-bit integers.
    The array is read-only if the producer says so, or says that it is a copy; a producer from before DLPack 1.0 cannot say so.
    Raises BufferError, and whatever the producer raises."""
    try:
        capsule = given.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        capsule = given.__dlpack__()
    tensor, flags = _tensor_in(capsule)
    if tensor.device_type not in _in_host_memory:
        raise BufferError(f"it is on a device (DLPack device type {tensor.device_type}); this call takes host memory only")
    name = _kinds.get(tensor.kind, f"DLPack's type {tensor.kind} of ") + str(tensor.bits)
    if tensor.lanes != 1 or name not in _formats:
        raise BufferError(f"it holds {name}{f' x {tensor.lanes}' if tensor.lanes != 1 else ''}; "
                          f"gradients are {', '.join(_formats)}")
    shape = tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()
    if not tensor.data:
        if 0 not in shape:
            raise BufferError("it has elements, but its data pointer is null")
        return numpy.empty(shape, _formats[name]), name
    size = tensor.bits // 8
    interface = {
        "version": 3,
        "typestr": numpy.dtype(_formats[name]).str,
        "shape": shape or (1,),
        "strides": tuple(size * stride for stride in tensor.strides[:tensor.ndim]) if shape and tensor.strides else None,
        "data": (tensor.data + tensor.byte_offset, bool(flags & (_read_only | _is_copy))),
    }
    array = numpy.asarray(_View(capsule, interface))
    return (array if shape else array.reshape(())), name  # numpy 1.24 has no view without a dimension


def _tensor_in(capsule: Any) -> tuple[_Tensor, int]:
    """What the capsule holds, and its flags."""
    if _is_valid(capsule, b"dltensor"):
        return ctypes.cast(_pointer(capsule, b"dltensor"), POINTER(_Tensor)).contents, 0
    if not _is_valid(capsule, b"dltensor_versioned"):
        raise BufferError("its __dlpack__() returned no DLPack capsule, or one that had already been used")
    managed = ctypes.cast(_pointer(capsule, b"dltensor_versioned"), POINTER(_Versioned)).contents
    if managed.major != 1:
        raise BufferError(f"it uses version {managed.major} of DLPack; this package reads version 1")
    return managed.tensor, managed.flags
