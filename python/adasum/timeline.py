# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m adasum.timeline FOLDER > timeline.json: one timeline of the traces that processes have written to a folder, which
ADASUM_TRACE named, for chrome://tracing or https://ui.perfetto.dev. Times are those of each host's clock."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any


def read(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The events of all processes, in Chrome's trace format, with times in microseconds since the first one. Processes are in
    the order of their ranks."""
    processes = []
    for file in folder.glob("adasum.*.json"):
        lines = [line.rstrip(",") for line in file.read_text().splitlines()[1:]]
        processes.append([json.loads(line) for line in lines if line.endswith("}")])  # a killed process may have cut the last one
    if not any(len(events) > 1 for events in processes):
        raise SystemExit(f"adasum.timeline: {folder} has no file adasum.*.json with a step of a reduction")
    processes.sort(key=lambda events: [int(word) if word.isdigit() else 0 for word in events[0]["args"]["name"].split()[1:2]])
    start = min(event["ts"] for events in processes for event in events if "ts" in event)
    for number, events in enumerate(processes):
        for event in events:
            event["pid"] = number
            if "ts" in event:
                event["ts"] = round(event["ts"] - start, 3)
    return [event for events in processes for event in events]


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print("[" + ",\n".join(map(json.dumps, read(pathlib.Path(sys.argv[1])))) + "]")
