# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What report.py and plot.py both take from scale.json."""

import json
import pathlib

HIERARCHICAL = "hierarchical"  # another combination: the mean inside nodes of eight ranks


def size_name(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size // 1_000_000} MB"


class Results:
    """Seconds of one scale.json. The ranks and sizes are those for which both a sum and a schedule were simulated."""

    def __init__(self, path):
        self.document = json.loads(pathlib.Path(path).read_text())
        self.sums, self.schedules = {}, {}
        tables = {"sum": self.sums, "adasum": self.schedules}
        for row in self.document["rows"]:
            table = tables[row["kind"]]
            table.setdefault((row["scenario"], row["ranks"], row["bytes"]), {})[row["name"]] = row["seconds"]
        self.chosen = {(row["ranks"], row["bytes"]): row["name"] for row in self.document["automatic"]}
        self.model = {(row["ranks"], row["bytes"], row["name"]): row["seconds"] for row in self.document["model"]}

    def both(self, scenario):
        return sorted((r, b) for s, r, b in self.schedules if s == scenario and (s, r, b) in self.sums)

    def ranks(self, scenario):
        return sorted({ranks for ranks, _ in self.both(scenario)})

    def sizes(self, scenario, ranks):
        return [size for r, size in self.both(scenario) if r == ranks]

    def sum(self, scenario, ranks, size):
        """(algorithm, seconds) of the fastest MPI_Allreduce."""
        return min(self.sums[scenario, ranks, size].items(), key=lambda entry: entry[1])

    def ratios(self, scenario, ranks, size):
        """{schedule: seconds over those of the fastest MPI_Allreduce}"""
        least = self.sum(scenario, ranks, size)[1]
        return {name: seconds / least for name, seconds in self.schedules[scenario, ranks, size].items()}

    def best(self, scenario, ranks, size):
        """(schedule, ratio) of the fastest that computes the whole tree."""
        whole = {name: ratio for name, ratio in self.ratios(scenario, ranks, size).items() if name != HIERARCHICAL}
        return min(whole.items(), key=lambda entry: entry[1])

    def automatic(self, scenario, ranks, size):
        """(schedule, ratio) of what automatic chooses; None where that was not simulated."""
        name = self.chosen[ranks, size]
        ratio = self.ratios(scenario, ranks, size).get(name)
        return None if ratio is None else (name, ratio)
