# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a reduction found."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ._errors import BadInput
from ._library import Handle, byref


class Report(Mapping[str, Any]):
    """What a reduction found, as the C++ library's report: norms, weights, and how orthogonal the gradients were.

    A read-only mapping: ``report["orthogonality"]`` and the other keys are those of the library's JSON (docs/guide/reports.md).
    Values are read only when they are asked for. ``Report(text)`` makes a report from a line that :meth:`json` returned.
    Reports can be copied and pickled."""

    __slots__ = ("_handle", "_library", "_text", "_values")

    _handle: Handle | None
    _library: ctypes.CDLL | None
    _text: str | None
    _values: dict[str, Any] | None

    def __init__(self, text: str) -> None:
        try:
            values = json.loads(text)
        except (TypeError, ValueError, RecursionError) as problem:
            raise BadInput(f"adasum.Report: the text is not a report: {problem}") from problem
        if not isinstance(values, dict) or not isinstance(text, str):
            raise BadInput("adasum.Report: the text is not a report: a report is one JSON object")
        self._handle, self._library, self._text, self._values = None, None, text, values

    @classmethod
    def _of(cls, handle: Handle, library: ctypes.CDLL) -> Report:
        """A report made from the C library's, which is freed with this one."""
        report = cls.__new__(cls)
        report._handle, report._library, report._text, report._values = handle, library, None, None
        return report

    def json(self) -> str:
        """One line of JSON."""
        if self._text is None:
            room = self._library.adasum_report_json(self._handle, 0, None, 0) + 1
            text = ctypes.create_string_buffer(room)
            self._library.adasum_report_json(self._handle, 0, text, room)
            self._text = text.value.decode()
        return self._text

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary of the caller's own."""
        return json.loads(self.json())

    def _read(self) -> dict[str, Any]:
        if self._values is None:
            self._values = self.to_dict()
        return self._values

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __reduce__(self) -> tuple[type[Report], tuple[str]]:
        return Report, (self.json(),)

    def __repr__(self) -> str:
        return f"adasum.Report({self.json()!r})"

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)  # there is none if __init__ has raised
        if handle is not None and handle.id and byref is not None:
            self._library.adasum_report_free(byref(handle))
