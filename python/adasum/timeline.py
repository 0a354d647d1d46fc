# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m adasum.timeline FOLDER > timeline.json: one timeline of the traces that processes have written to a folder, which
ADASUM_TRACE named, for chrome://tracing or https://ui.perfetto.dev. Times are those of each host's clock."""

from __future__ import annotations

import decimal
import json
import pathlib
import sys
from typing import Any


def read(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The events of all processes, in Chrome's trace format, with times in microseconds since the first one. Processes are in
    the order of their ranks."""
    processes: dict[str, list[dict[str, Any]]] = {}  # several copies of the library may be loaded in one
    for file in sorted(folder.glob("adasum.*.json")):
        lines = [line.rstrip(",") for line in file.read_text().splitlines()[1:]]
        events = [json.loads(line, parse_float=decimal.Decimal) for line in lines if line.endswith("}")]  # not cut off
        if len(events) > 1:
            processes.setdefault(file.name.rsplit(".", 2)[0], events[:1]).extend(events[1:])
    if not processes:
        raise SystemExit(f"adasum.timeline: {folder} has no file adasum.*.json with a step of a reduction")
    start = min(event["ts"] for events in processes.values() for event in events[1:])
    names = [events[0]["args"]["name"] for events in processes.values()]
    for name in {name for name in names if names.count(name) > 1 and name.startswith("rank")}:
        print(f"adasum.timeline: several processes are {name}: are there traces of several runs in {folder}?", file=sys.stderr)
    in_order = sorted(processes.values(), key=lambda events: _rank_of(events[0]["args"]["name"]))
    for number, events in enumerate(in_order):
        for event in events:
            event["pid"] = number
            if "ts" in event:
                event["ts"] = float(event["ts"] - start)
    return [event for events in in_order for event in events]


def _rank_of(name: str) -> int:
    """Of "rank 3 on host", or of "process 123 on host", where nobody has said which rank it is."""
    return int(name.split()[1])


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print("[" + ",\n".join(map(json.dumps, read(pathlib.Path(sys.argv[1])))) + "]")
