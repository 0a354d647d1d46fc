# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of others as the C library takes them: numpy's, and whatever offers DLPack (tensors of PyTorch, JAX, CuPy)."""

import numpy

from ._errors import BadInput

_types = {"float64": 1, "float32": 2, "float16": 3, "bfloat16": 4}


class Elements:
    """The memory of an array, which must be contiguous and in memory of the host."""

    __slots__ = ("address", "count", "type", "array", "_keep")

    def __init__(self, given, call, *, written=False):
        array, name = _as_numpy(given, call)
        if name not in _types:
            raise BadInput(f"{call}: the array holds {name}; gradients are float64, float32, float16 or bfloat16")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise BadInput(f"{call}: the array has gaps between its elements (strides {array.strides}); give a contiguous copy")
        if not array.dtype.isnative:
            raise BadInput(f"{call}: the array's bytes are in another order than this machine's")
        if written and not array.flags.writeable:
            raise BadInput(f"{call}: the array is read-only, and the result is written to it")
        self.array, self._keep = array, given
        self.address, self.count, self.type = array.ctypes.data, array.size, _types[name]


def _as_numpy(given, call):
    """A view as an array of numpy's, and the name of its element type. bfloat16 travels as 16-bit integers."""
    if isinstance(given, numpy.ndarray):
        return given, given.dtype.name
    if type(given).__module__.partition(".")[0] == "torch":
        return _torch_as_numpy(given, call)
    if hasattr(given, "__dlpack__"):
        try:
            return (array := numpy.from_dlpack(given)), array.dtype.name
        except (BufferError, RuntimeError, TypeError, ValueError) as problem:
            raise BadInput(f"{call}: the array cannot be read in place by DLPack: {problem}") from problem
    raise BadInput(f"{call}: neither an array of numpy's nor one that offers DLPack, but {type(given).__name__}")


def _torch_as_numpy(tensor, call):
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise BadInput(f"{call}: neither an array nor a tensor, but {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise BadInput(f"{call}: the tensor is on {tensor.device}; this call is for memory of the host")
    if tensor.layout != torch.strided:
        raise BadInput(f"{call}: the tensor is sparse")
    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    try:
        return tensor.numpy(), name
    except (RuntimeError, TypeError) as problem:
        raise BadInput(f"{call}: the tensor cannot be read in place: {problem}") from problem
