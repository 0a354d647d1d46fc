# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a reduction found."""

import ctypes
import json

from ._library import Handle, byref, library


class Report:
    """What a reduction found, as the C++ library's report: norms, weights, and how orthogonal the gradients were.

    ``report["orthogonality"]`` and the other keys are those of the library's JSON (docs/guide.md). Nothing is computed before
    it is asked for."""

    __slots__ = ("_handle", "_text", "_values")

    def __init__(self, text=None):
        self._handle, self._text, self._values = Handle(0), text, None

    def json(self):
        """One line of JSON."""
        if self._text is None:
            room = library.adasum_report_json(self._handle, 0, None, 0) + 1
            text = ctypes.create_string_buffer(room)
            library.adasum_report_json(self._handle, 0, text, room)
            self._text = text.value.decode()
        return self._text

    def values(self):
        """The same as a dictionary."""
        if self._values is None:
            self._values = json.loads(self.json())
        return self._values

    def __getitem__(self, name):
        return self.values()[name]

    def keys(self):
        return self.values().keys()

    def __repr__(self):
        return f"adasum.Report({self.json()!r})"

    def __del__(self):
        if self._handle.id and library is not None:
            library.adasum_report_free(byref(self._handle))
