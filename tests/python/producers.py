# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that offer DLPack, and nothing else."""

import ctypes
from ctypes import c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object

_destructor = ctypes.PYFUNCTYPE(None, c_void_p)
_new = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
kinds = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
read_only, is_copy = 1, 2
_kept = []  # all that capsules point to, for good: who reads them after they are gone is found by counting, not by a crash


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", c_int32 * 2), ("ndim", c_int32), ("kind", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", c_void_p), ("strides", c_void_p), ("byte_offset", c_uint64)]


class Old(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("version", c_uint32 * 2), ("manager", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", Tensor)]


class Before1:
    """A producer of before DLPack 1.0, for an array of numpy's. `changes` to what it tells of the array. `counts`: the capsules
    that it has made, and those that are gone; not for calls where one goes while an exception is raised, as this is counted by
    Python."""

    def __init__(self, array, counts=False, **changes):
        self.array, self.counts, self.changes = array, counts, changes
        self.made = self.gone = 0

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, stream=None):
        return self._capsule(b"dltensor", Old(tensor=self._tensor()))

    def _tensor(self):
        array = self.array
        shape, strides = ((c_int64 * array.ndim)(*numbers)
                          for numbers in (array.shape, [stride // array.itemsize for stride in array.strides]))
        _kept.extend([array, shape, strides])
        told = {"data": array.ctypes.data, "device": (1, 0), "ndim": array.ndim, "kind": kinds[array.dtype.kind],
                "bits": 8 * array.itemsize, "lanes": 1, "shape": ctypes.addressof(shape), "strides": ctypes.addressof(strides)}
        return Tensor(**{**told, **self.changes})

    def _capsule(self, name, managed):
        @_destructor
        def count(_):
            self.gone += 1

        _kept.extend([managed, name, count])
        self.made += 1
        return _new(ctypes.addressof(managed), name, ctypes.cast(count, c_void_p) if self.counts else None)


class Version1(Before1):
    """One of DLPack 1.0, which can say what must not be written."""

    def __init__(self, array, flags=0, major=1, **named):
        super().__init__(array, **named)
        self.flags, self.major = flags, major

    def __dlpack__(self, *, stream=None, max_version=None):
        if max_version is None:
            raise BufferError("only for those who know version 1")
        return self._capsule(b"dltensor_versioned", Versioned(version=(self.major, 3), flags=self.flags, tensor=self._tensor()))


class Wrapped:
    """Another library's array, without that library's type. `knows_version`: as in DLPack 1.0, or as before."""

    def __init__(self, array, knows_version):
        self._array, self._knows_version = array, knows_version

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, **named):
        if not self._knows_version and "max_version" in named:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self._array.__dlpack__(**named)
