# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a reduction found."""

from __future__ import annotations

import ctypes
import json
from collections.abc import KeysView
from typing import Any

from ._library import Handle, byref, library


class Report:
    """What a reduction found, as the C++ library's report: norms, weights, and how orthogonal the gradients were.

    ``report["orthogonality"]`` and the other keys are those of the library's JSON (docs/guide.md). Nothing is computed before
    it is asked for."""

    __slots__ = ("_handle", "_text", "_values")

    def __init__(self, text: str | None = None) -> None:
        self._handle, self._text = Handle(0), text
        self._values: dict[str, Any] | None = None

    def json(self) -> str:
        """One line of JSON."""
        if self._text is None:
            room = library.adasum_report_json(self._handle, 0, None, 0) + 1
            text = ctypes.create_string_buffer(room)
            library.adasum_report_json(self._handle, 0, text, room)
            self._text = text.value.decode()
        return self._text

    def values(self) -> dict[str, Any]:
        """The same as a dictionary."""
        if self._values is None:
            self._values = json.loads(self.json())
        return self._values

    def __getitem__(self, name: str) -> Any:
        return self.values()[name]

    def keys(self) -> KeysView[str]:
        return self.values().keys()

    def __repr__(self) -> str:
        return f"adasum.Report({self.json()!r})"

    def __del__(self) -> None:
        if self._handle.id and library is not None:
            library.adasum_report_free(byref(self._handle))
