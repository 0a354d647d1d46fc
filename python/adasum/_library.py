# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C library (include/adasum/adasum.h), its prototypes, and its errors as exceptions. A call by ctypes lets other threads
of Python run meanwhile."""

from __future__ import annotations

import contextlib
import ctypes
import operator
import pathlib
import sys
from collections.abc import Iterable, Mapping
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy

from . import _errors


class Handle(ctypes.Structure):
    """adasum_plan or adasum_report"""

    _fields_ = [("id", c_uint64)]


_lengths = POINTER(c_size_t)
_prototypes = {
    "adasum_version": (ctypes.c_uint,),
    "adasum_build_information": (c_char_p,),
    "adasum_rules": (c_char_p,),
    "adasum_last_error": (c_char_p,),
    "adasum_pair": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, _lengths, c_size_t),
    "adasum_combine": (c_int, POINTER(c_void_p), c_size_t, c_void_p, c_size_t, c_int, _lengths, c_size_t, c_char_p, c_char_p,
                       POINTER(Handle)),
    "adasum_report_json": (c_size_t, Handle, c_int64, c_char_p, c_size_t),
    "adasum_report_free": (c_int, POINTER(Handle)),
}
"""result type, argument types; those that need MPI stand in mpi.py, as a package without MPI lacks them"""

timeout_code = 6
_exceptions = {
    1: _errors.BadInput,
    2: _errors.AgreementError,
    3: _errors.NonfiniteError,
    4: _errors.SharedMemoryError,
    5: _errors.CommunicationError,
    timeout_code: _errors.TimeoutError,
    7: _errors.MPIError,
    8: MemoryError,
}


def load(variant: str = "") -> ctypes.CDLL:
    """Loads the library, or its variant for an MPI library (``mpich``), of which a wheel has some beside it."""
    name = f"libadasum-calls{variant and '.' + variant}.{'dylib' if sys.platform == 'darwin' else 'so'}"
    path = pathlib.Path(__file__).parent / name
    if not path.exists():
        raise ImportError(f"adasum: there is no {name} in {path.parent}: the package was built without it")
    loaded = ctypes.CDLL(str(path))
    declare(loaded, _prototypes)
    return loaded


def declare(library: ctypes.CDLL, prototypes: Mapping[str, tuple[Any, ...]]) -> None:
    for name, (result, *arguments) in prototypes.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


library = load()
"""for calls in one process; those among ranks may be another's (mpi.py)"""


def check(error: int, called: ctypes.CDLL = library) -> None:
    """Raises what a function of a library has returned, if that is an error."""
    if error:
        if error == timeout_code:
            from ._interruption import raise_interruption

            raise_interruption(called)
        raise _exceptions.get(error, _errors.Error)(called.adasum_last_error().decode(errors="backslashreplace"))


def whole_number(value: Any) -> int:
    """An integer of Python's, of numpy's, or anything else that can be an index. A bool is a mistake."""
    require_no_bool(value)
    return operator.index(value)


def require_no_bool(value: Any) -> None:
    if isinstance(value, (bool, numpy.bool_)):
        raise TypeError("a bool is not a number")


def shown(number: int) -> str:
    """A number as shown in a message. Python refuses to print very long ones."""
    return str(number) if abs(number) < 1 << 128 else f"a number of {number.bit_length()} bits"


def lengths_of(segments: Iterable[int] | None) -> tuple[Any, int]:
    """A C array of segments' lengths, and how many there are; nothing for one segment."""
    if segments is None:
        return None, 0
    try:
        lengths = [whole_number(length) for length in segments]
    except TypeError as problem:
        raise _errors.BadInput(f"adasum: the lengths of segments are not a list of integers: {problem}") from problem
    if lengths and not 0 <= min(lengths) <= max(lengths) < 1 << 63:
        wrong = min(lengths) if min(lengths) < 0 else max(lengths)
        raise _errors.BadInput(f"adasum: a segment has the length {shown(wrong)}; a length is at least 0 and below 2**63")
    return (c_size_t * max(1, len(lengths)))(*lengths), len(lengths)


def _encoded(text: str, what: str) -> bytes:
    """As the library reads texts: to it, a NUL would be the end."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError as problem:
        raise _errors.BadInput(f"adasum: {what} {text!r} cannot be encoded as UTF-8: {problem}") from problem
    if 0 in encoded:
        raise _errors.BadInput(f"adasum: {what} {text!r} contains a NUL character")
    return encoded


def name_of(rule: str) -> bytes:
    """A rule as the library reads it."""
    if not isinstance(rule, str):
        raise _errors.BadInput(f"adasum: the rule must be a string, not {type(rule).__name__}")
    return _encoded(rule, "the rule")


def text_of(options: Mapping[str, Any]) -> bytes:
    """The text by which the library reads options: ``nonfinite="raise", timeout=60`` is ``nonfinite=raise,timeout=60``."""
    return b",".join(_text_of_one(name, value) for name, value in options.items() if value is not None)


def readable_text_of(options: Mapping[str, Any]) -> bytes:
    """The same for those options that have a text. For a call in which this rank only tells the others that it cannot take part:
    how it tells them depends on check_agreement."""
    texts = []
    for name, value in options.items():
        with contextlib.suppress(Exception):
            texts.append(text_of({name: value}))
    return b",".join(filter(None, texts))


def _text_of_one(name: str, value: Any) -> bytes:
    text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return _encoded(f"{name}={text}", "the option")


def version() -> str:
    """The version of the library, as text."""
    number = library.adasum_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


__all__ = ["Handle", "byref", "c_double", "c_int", "check", "lengths_of", "library", "load", "name_of",
           "readable_text_of", "require_no_bool", "shown", "text_of", "timeout_code", "version", "whole_number"]
