# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of one process."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import c_void_p
from typing import Any

import numpy

from ._arrays import Array, Elements, require_alike
from ._errors import BadInput
from ._library import Handle, byref, check, lengths_of, library, name_of, text_of
from .report import Report


def _out_like(first: Elements, out: Array | None, call: str) -> tuple[Any, Elements]:
    """The array for the result: a new one of numpy's if none is given."""
    if out is None:
        if first.type == 4:
            raise BadInput(f"{call}: numpy has no bfloat16: give `out`, such as a tensor of PyTorch")
        out = numpy.empty_like(first.array)
    return out, Elements(out, call, written=True)


def pair(a: Array, b: Array, out: Array | None = None, *, segments: Iterable[int] | None = None) -> Any:
    """The adaptive sum of two gradients, segment by segment:
    ``(1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b``.

    Args:
        a: A contiguous array from numpy or any library that offers DLPack. It is not changed, unless it is ``out``.
        b: Another array of the same shape, order (C or Fortran) and type.
        out: Where the result goes, which may be ``a`` or ``b``.
        segments: The lengths of the segments (layers); without them, the whole array is one.

    Returns:
        ``out``, or a new numpy array.

    Raises:
        BadInput: An argument cannot be used; nothing has changed.
    """
    call = "adasum.pair"
    inputs = [Elements(a, call), Elements(b, call)]
    out, target = _out_like(inputs[0], out, call)
    require_alike(inputs, target, call)
    check(library.adasum_pair(inputs[0].address, inputs[1].address, target.address, target.count, target.type,
                              *lengths_of(segments)))
    return out


def combine(gradients: Iterable[Array], out: Array | None = None, *, rule: str = "adasum",
            segments: Iterable[int] | None = None, **options: Any) -> tuple[Any, Report]:
    """Combines any number of gradients under a rule.

    Args:
        gradients: Arrays, as for :func:`pair`.
        out: Where the result goes, which may be one of the gradients.
        rule: The rule's name, with parameters after a colon: ``"mean"``, ``"centred_clipping:radius=2"``; :func:`rules` lists
            them.
        segments: The lengths of the segments (layers); without them, the whole array is one.
        options: ``measure``, ``nonfinite``.

    Returns:
        The result, which is ``out`` or a new numpy array, and a :class:`Report`.

    Raises:
        BadInput: An argument cannot be used; nothing has changed.
        NonfiniteError: A gradient holds Inf or NaN, with ``nonfinite="raise"``; nothing has changed.
    """
    call = "adasum.combine"
    if not isinstance(gradients, Iterable):
        raise BadInput(f"{call}: the gradients must be a list of arrays, not {type(gradients).__name__}")
    inputs = [Elements(one, call) for one in gradients]
    if not inputs:
        raise BadInput(f"{call}: the list of gradients is empty")
    out, target = _out_like(inputs[0], out, call)
    require_alike(inputs, target, call)
    found = Handle(0)
    addresses = (c_void_p * len(inputs))(*(one.address for one in inputs))
    check(library.adasum_combine(addresses, len(inputs), target.address, target.count, target.type, *lengths_of(segments),
                                 name_of(rule), text_of(options), byref(found)))
    return out, Report._of(found, library)


def tree(gradients: Iterable[Array], out: Array | None = None, *, segments: Iterable[int] | None = None,
         **options: Any) -> tuple[Any, Report]:
    """Combines any number of gradients by adaptive summation along the library's tree, as :func:`combine` does with the rule
    ``"adasum"``. Returns the result and a :class:`Report`."""
    return combine(gradients, out, rule="adasum", segments=segments, **options)


def rules() -> list[str]:
    """The names of all rules."""
    return library.adasum_rules().decode().split(", ")
