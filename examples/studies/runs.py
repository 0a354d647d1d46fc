# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of a study: on all cores, each written to a file as soon as it is done, none done twice."""

import concurrent.futures
import csv
import dataclasses
import fcntl
import functools
import math
import multiprocessing
import os
import pathlib
import subprocess
import typing

import torch
import tqdm

from training import Evaluation, Setting, train

_fields = [field.name for kind in (Setting, Evaluation) for field in dataclasses.fields(kind)]


@functools.lru_cache
def _commit():
    """Of the library, with "-dirty" where files have changed since."""
    git = ["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(git, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


class Results:
    """A CSV file of runs: a line for each evaluation, with the setting, the library's commit and PyTorch's version."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def read(self):
        """{Setting: [Evaluation]} of the runs that are complete."""
        if not self.path.exists():
            return {}
        found = {}
        with open(self.path, newline="") as file:
            for row in csv.DictReader(file):
                setting, evaluation = (kind(**{field.name: _value(field.type, row[field.name])
                                               for field in dataclasses.fields(kind)}) for kind in (Setting, Evaluation))
                found.setdefault(setting, []).append(evaluation)
        return {setting: run for setting, run in found.items() if run[-1].round == run[-1].rounds}

    def add(self, setting, run):
        """Appends a run; processes take turns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", newline="") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            writer = csv.writer(file, lineterminator="\n")
            if file.seek(0, os.SEEK_END) == 0:  # not before it is locked: another process may have written the first line
                writer.writerow([*_fields, "commit", "pytorch"])
            for evaluation in run:
                values = [*dataclasses.astuple(setting), *dataclasses.astuple(evaluation)]
                writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values] + [_commit(), torch.__version__])


def _value(kind, text):
    return {int: int, float: float, str: str}[kind](text)


def last_error(run):
    """At the end of a run: the part of errors, or the loss where nothing is classified. Infinite if the run diverged."""
    return run[-1].loss if math.isnan(run[-1].error) or math.isinf(run[-1].loss) else run[-1].error


@dataclasses.dataclass(frozen=True)
class Task:
    """How a study runs a setting. All of it can be sent to another process."""

    problem: typing.Callable
    """makes the problem"""
    results: Results
    evaluations: int
    """of each run"""
    goal: typing.Callable = last_error
    """of a run: what learning rates are chosen by, the less the better"""
    beyond: int = 2
    """how many rates are tried on either side of the best one"""


def tried(known, setting):
    """The settings with a result that differ from this one in the rate alone, by their rates."""
    return sorted((other for other in known if _with_rate(other, setting.rate) == setting), key=lambda other: other.rate)


class Runner:
    """Runs settings of a study in a few processes."""

    def __init__(self, task, chosen):
        self._task, self._results = task, task.results
        self._jobs, self._progress = chosen.jobs or len(os.sched_getaffinity(0)), not chosen.no_progress

    def run(self, settings, title):
        """Those of the settings that have no result yet."""
        known = self._results.read()
        self._all(title, _run, [setting for setting in dict.fromkeys(settings) if setting not in known])
        return self._results.read()

    def tune(self, settings, title):
        """Finds the best rate of each setting, beginning with the rate that it has, on a grid of powers of two, and beyond the
        best one on either side. Returns {setting: the same with the best rate}."""
        self._all(title, _tune, list(settings))
        known = self._results.read()
        return {setting: _best(self._task, known, setting) for setting in settings}

    def _all(self, title, work, settings):
        if not settings:
            return
        settings = sorted(settings, key=lambda setting: setting.workers * setting.batch)  # long ones first: many rounds
        with (concurrent.futures.ProcessPoolExecutor(min(self._jobs, len(settings)), multiprocessing.get_context("spawn"),
                                                     _begin, (self._task,)) as pool,
              tqdm.tqdm(total=len(settings), desc=title, unit="", disable=not self._progress) as bar):
            for done in concurrent.futures.as_completed([pool.submit(work, setting) for setting in settings]):
                done.result()
                bar.update()


# In each of the processes:


def _begin(given):
    global task, problem
    torch.set_num_threads(1)
    task, problem = given, given.problem()


def _run(setting):
    task.results.add(setting, train(problem, setting, task.evaluations))


def _tune(setting):
    factors = sorted((2.0 ** k for k in range(-task.beyond, task.beyond + 1)), key=lambda f: (max(f, 1 / f), -f))
    while True:
        known = task.results.read()
        middle = _best(task, known, setting).rate if setting in known else setting.rate
        missing = next((other for factor in factors if (other := _with_rate(setting, middle * factor)) not in known), None)
        if missing is None:
            return
        _run(missing)


def _best(task, known, setting):
    return min(tried(known, setting), key=lambda other: (task.goal(known[other]), other.rate), default=None)


def _with_rate(setting, rate):
    return dataclasses.replace(setting, rate=float(f"{rate:.6g}"))
