#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Summarises what scripts/gpu-check left in a folder: writes gpu.json there and prints a table."""

import csv
import json
import re
import statistics
import sys
import xml.etree.ElementTree
from pathlib import Path


def benchmark_times(path):
    """Microseconds of each repetition, and bytes per second of each, by name."""
    times, rates = {}, {}
    if not path.exists():
        return {}, times, rates
    found = json.loads(path.read_text())
    for run in found["benchmarks"]:
        if run.get("run_type") != "iteration":
            continue
        name = run["run_name"].removesuffix("/iterations:5/manual_time").removesuffix("/iterations:5").removesuffix("/manual_time")
        times.setdefault(name, []).append(run["real_time"])
        rates.setdefault(name, []).append(run["bytes_per_second"])
    return found["context"], times, rates


def tests_of(path):
    if not path.exists():
        return {}
    results = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        results[case.get("name")] = case.get("status")
    return results


def ncu_lines(path):
    """Kernel, % of the peak DRAM throughput, nanoseconds; one for each profiled launch."""
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.startswith('"')]
    launches = {}
    for row in csv.DictReader(lines):
        kernel = re.sub(r"<.*|\(.*", "", row.get("Kernel Name", ""))
        launches.setdefault((row.get("ID"), kernel), {})[row.get("Metric Name")] = row.get("Metric Value")
    return [{"kernel": kernel, **metrics} for (_, kernel), metrics in launches.items()]


def main():
    folder = Path(sys.argv[1])
    context, times, rates = benchmark_times(folder / "bench.json")
    device = (folder / "device.txt").read_text().strip() if (folder / "device.txt").exists() else None
    steps = {name: {"status": int(status), "seconds": int(seconds)}
             for name, status, seconds in (line.split() for line in (folder / "steps.txt").read_text().splitlines())}
    medians = {name: statistics.median(values) for name, values in times.items()}
    ceiling = statistics.median(rates["cuda/copy/float/67108864"]) if "cuda/copy/float/67108864" in rates else None

    def quartiles(values):
        if len(values) < 3:
            return [min(values), max(values)]
        cut = statistics.quantiles(values, n=4, method="inclusive")
        return [cut[0], cut[2]]

    summary = {
        "device": device,
        "cuda": context.get("cuda"),
        "steps": steps,
        "tests": tests_of(folder / "tests.xml"),
        "copy_bytes_per_second": ceiling,
        "benchmarks": {name: {"median_us": medians[name], "quartiles_us": quartiles(times[name]),
                              "bytes_per_second": statistics.median(rates[name]),
                              "of_the_ceiling": statistics.median(rates[name]) / ceiling if ceiling else None}
                       for name in times},
        "ncu": {path.stem.removeprefix("ncu."): ncu_lines(path) for path in sorted(folder.glob("ncu.*.log"))},
    }
    kokkos = folder / "kokkos.log"
    if kokkos.exists():
        ratios = [float(ratio) for ratio in re.findall(r"ratio ([0-9.]+)", kokkos.read_text())]
        if ratios:
            summary["kokkos_over_cuda"] = statistics.median(ratios)

    def ratio(slow, fast):
        slow, fast = f"cuda/{slow}", f"cuda/{fast}"
        return medians[slow] / medians[fast] if slow in medians and fast in medians else None

    large, resnet = 1 << 26, 25557032
    summary["ratios"] = {
        "cublas / pair": ratio(f"cublas/float/{large}", f"pair/float/{large}"),
        "thrust / pair": ratio(f"thrust/float/{large}", f"pair/float/{large}"),
        "161 segments / one": ratio(f"pair_161_segments/float/{resnet}", f"pair_one_segment/float/{resnet}"),
        "seven pairs / tree of 8": ratio(f"seven_pairs/float/{1 << 22}", f"tree8/float/{1 << 22}"),
        **{f"two passes / on the chip, {n}": ratio(f"pair_two_passes/float/{n}", f"pair_on_chip/float/{n}")
           for n in (1 << 14, 1 << 18, 1 << 20, 2 << 20, 3 << 20)},
    }
    (folder / "gpu.json").write_text(json.dumps(summary, indent=1) + "\n")

    print(f"device: {device}; CUDA {context.get('cuda')}")
    for name, one in summary["benchmarks"].items():
        low, high = one["quartiles_us"]
        share = f"{100 * one['of_the_ceiling']:.0f} % of the copy" if one["of_the_ceiling"] else ""
        print(f"{name:44} {one['median_us']:10.1f} us [{low:.1f} {high:.1f}] {share}")
    for name, value in summary["ratios"].items():
        if value:
            print(f"{name:44} {value:10.2f}")
    if "kokkos_over_cuda" in summary:
        print(f"{'kokkos / cuda':44} {summary['kokkos_over_cuda']:10.2f}")
    for case, launches in summary["ncu"].items():
        for launch in launches:
            print(f"ncu {case}: {launch}")


if __name__ == "__main__":
    main()
