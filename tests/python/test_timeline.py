# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The timeline of what the test python.self_test has written: pytest test_timeline.py --folder=…"""

import json
import pathlib
import subprocess
import sys


def test_timeline(pytestconfig):
    folder = pathlib.Path(pytestconfig.getoption("folder"))
    events = json.loads(subprocess.run([sys.executable, "-m", "adasum.timeline", folder], check=True, stdout=subprocess.PIPE).stdout)
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert [name.split(" on ")[0] for name in names] == ["rank 0", "rank 1"]
    for rank in range(2):
        open_steps, seen, last = [], set(), 0
        for event in events:
            if event["pid"] != rank or event["ph"] == "M":
                continue
            assert event["ts"] >= last >= 0
            last = event["ts"]
            if event["ph"] == "B":
                open_steps.append(event["name"])
                seen.add(event["name"])
            else:
                assert open_steps.pop() in seen
        assert not open_steps and {"bring", "measure", "combine", "wait"} <= seen
        assert last < 60e6  # since the first event


def test_two_runs(pytestconfig, tmp_path):
    for file in pathlib.Path(pytestconfig.getoption("folder")).iterdir():
        for run in "first", "second":
            (tmp_path / file.name.replace("adasum.", f"adasum.{run}-")).write_text(file.read_text())
    found = subprocess.run([sys.executable, "-m", "adasum.timeline", tmp_path], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    assert found.stderr.count("several processes are rank") == 2


def test_no_traces(tmp_path):
    (tmp_path / "adasum.host.1.0.json").write_text('[\n{"ph": "M", "args": {"name": "rank 0 on host"}},\n{"ph": "B", "p')
    (tmp_path / "adasum.host.2.0.json").touch()
    found = subprocess.run([sys.executable, "-m", "adasum.timeline", tmp_path], stderr=subprocess.PIPE, text=True)
    assert found.returncode == 1 and "has no file" in found.stderr
