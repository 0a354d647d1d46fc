# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C while a rank waits for another: in messages (making a plan), and in memory that ranks share (a run of it). Needs two
ranks. Messages are in flight afterwards, so each has a communicator of its own, and nothing is freed."""

import os
import signal
import sys
import threading
import time

import numpy
from mpi4py import MPI

import adasum

world = MPI.COMM_WORLD
mine = numpy.ones(200_000, "f4")
kept = []


def interrupted(call):
    """Whether Ctrl-C ends it, and soon."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        call()
    except KeyboardInterrupt:
        return time.monotonic() - begin < 20
    return False


def check(what, prepare):
    call = prepare()
    world.Barrier()
    if world.rank == 0:
        if not interrupted(call):
            print(f"failed: {what}: Ctrl-C was not answered", file=sys.stderr)
            world.Abort(1)
        time.sleep(0.1)
    world.Barrier()


def single_call():
    comm = world.Dup()
    kept.append(comm)
    adasum.allreduce(numpy.ones(3), comm)
    return lambda: adasum.allreduce(mine, comm)


def run_of_plan():
    comm = world.Dup()
    plan = adasum.Plan(comm, len(mine))
    plan(mine)
    kept.extend([comm, plan])
    return lambda: plan(mine)


check("a single call", single_call)
check("a run", run_of_plan)
world.Barrier()
if world.rank == 0:
    print("Ctrl-C was answered")
sys.stdout.flush()
os._exit(0) if world.size == 1 else world.Abort(0)
