# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the benchmarks left, one function for each of them; bench/report.py prints it."""

import json
import re
import statistics


def summary(values):
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return dict(zip(("q1", "median", "q3"), quartiles), repetitions=len(values))


def read_kernels(path, clock="cpu_time"):
    """{name: {median, q1, q3}} of Google Benchmark's repetitions, and its context.

    Processor time by default: the kernels run in one thread, and what else the machine does meanwhile is not theirs.
    """
    document = json.loads(path.read_text())
    seconds = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    samples = {}
    for run in document["benchmarks"]:
        if run["run_type"] == "iteration":
            samples.setdefault(run["run_name"], []).append(run[clock] * seconds[run["time_unit"]])
    return {name: summary(values) for name, values in samples.items()}, document["context"]


def read_allreduce(path):
    """One dict per row, with the ratio to MPI_Allreduce of the same round."""
    document = json.loads(path.read_text())
    mpi = re.sub(r" (Version:\s*|v)(?=\d)", " ", document["mpi"])
    baseline = {row["elements"]: row["seconds"] for row in document["rows"] if row["name"] == "MPI_Allreduce"}
    for row in document["rows"]:
        ratios = [ours / theirs for ours, theirs in zip(row["seconds"], baseline[row["elements"]])]
        yield {
            "mpi": mpi,
            "ranks": document["ranks"],
            **{key: row[key] for key in ("elements", "name", "schedule", "batch")},
            "seconds": summary(row["seconds"]),
            "ratio": summary(ratios),
        }


def read_overlap(path):
    """One dict per row, with the fraction of the communication that each round has hidden."""
    document = json.loads(path.read_text())
    for row in document["rows"]:
        rounds = list(zip(row["computing"], row["communicating"], row["together"], row["inside"]))
        yield {
            "mpi": re.sub(r" (Version:\s*|v)(?=\d)", " ", document["mpi"]),
            "ranks": document["ranks"],
            **{key: row[key] for key in ("elements", "layers", "buckets", "schedule", "computation")},
            "seconds": {key: summary(row[key]) for key in ("computing", "communicating", "together", "inside")},
            "hidden": summary([(alone + communication - both) / communication
                               for alone, communication, both, _ in rounds]),
            "work": summary([inside / communication for _, communication, _, inside in rounds]),
        }


def read_memory(path):
    """One dict per line, over the ranks. Resident memory in bytes; scratch, and what came after the start, in gradients."""
    for line in path.read_text().splitlines():
        row = json.loads(line)
        gradient = 4 * row["elements"]
        yield {
            "mpi": re.sub(r" (Version:\s*|v)(?=\d)", " ", row["mpi"]),
            **{key: row[key] for key in ("ranks", "elements", "name")},
            "scratch": summary([bytes / gradient for bytes in row["scratch"]]),
            "peak_resident": summary(row["peak"]),
            "added": summary([(peak - before) / gradient for before, peak in zip(row["before"], row["peak"])]),
        }


def read_compile_time(path):
    """One dict, with what the library's header costs over the standard ones in each repetition."""
    document = json.loads(path.read_text())
    seconds = document["seconds"]
    return {
        "header": document["header"],
        "seconds": {name: summary(values) for name, values in seconds.items()},
        "cost": summary([ours - alone for ours, alone in zip(seconds["library"], seconds["standard"])]),
    }
