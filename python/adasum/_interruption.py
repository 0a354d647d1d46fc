# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C, and other signals that Python handles, while a rank waits for others in the library (src/python/signals.cpp)."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p

_functions = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch")


def answer_signals(library: ctypes.CDLL) -> None:
    """Answers signals from now on. To be called before the first communication."""
    library.adasum_python_answer_signals(*(ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p) for name in _functions))


def raise_interruption(library: ctypes.CDLL) -> None:
    """Raises what a handler raised while the call that has just failed was waiting, if one did."""
    exception = c_void_p(), c_void_p(), c_void_p()
    library.adasum_python_take_exception(*map(byref, exception))
    if exception[0]:
        ctypes.pythonapi.PyErr_Restore(*exception)
