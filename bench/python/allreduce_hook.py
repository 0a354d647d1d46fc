# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a bucket of gradients costs by adasum.torch.hook, beside the all-reduce that DistributedDataParallel itself does: the
calls that hooks make, in turns. A line for each size: median times, and for each of --kernels their quotient, with the least and
the largest quotient of five parts of the run. To be started by torchrun, for instance.

    torchrun --nproc_per_node 2 allreduce_hook.py [--rule RULE] [--seconds S] [--least-kib N] [--most-mib N]
                                                  [--device cpu|cuda] [--kernels auto|pytorch|compiled ...]"""

import argparse
import math
import statistics
import time

import torch
import torch.distributed

import adasum.torch


def once(call, device):
    torch.distributed.barrier()
    begin = time.perf_counter()
    call()
    if device != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - begin


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rule", default="adasum")
    arguments.add_argument("--seconds", type=float, default=3, help="for each size")
    arguments.add_argument("--least-kib", type=int, default=4)
    arguments.add_argument("--most-mib", type=int, default=64)
    arguments.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    arguments.add_argument("--kernels", default=["auto"], nargs="+")
    chosen = arguments.parse_args()
    torch.distributed.init_process_group("gloo" if chosen.device == "cpu" else "nccl")
    torch.set_num_threads(1)
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    states = {kernels: adasum.torch.State(rule=chosen.rule, kernels=kernels) for kernels in chosen.kernels}
    if rank == 0:
        print(f"{size} processes, {chosen.rule}, PyTorch {torch.__version__}, {chosen.device}\nKiB      all-reduce µs"
              + "".join(f"{name:>11} µs  quotient  (least, largest)" for name in states))
    quotients = {kernels: [] for kernels in states}
    kib = chosen.least_kib
    while kib <= 1024 * chosen.most_mib:
        mine, other = (torch.randn(256 * kib, device=chosen.device) for _ in range(2))
        other /= 1e30  # so that sums of sums stay finite
        calls = {"": lambda: torch.distributed.all_reduce(other, async_op=True).wait()}
        for name, state in states.items():
            calls[name] = lambda state=state: state.reduce(mine).wait()
        for call in calls.values():
            call()
        rounds = int(chosen.seconds / sum(once(call, chosen.device) for call in calls.values()))
        number = torch.tensor([max(15, min(2000, rounds))], device=chosen.device)
        torch.distributed.broadcast(number, 0)
        times = {name: [] for name in calls}
        for i in range(int(number)):
            for name in sorted(calls, reverse=bool(i % 2)):
                times[name].append(once(calls[name], chosen.device))
            other.mul_(1 / size)
        medians = {name: statistics.median(of_call) for name, of_call in times.items()}
        line = f"{kib:<8} {1e6 * medians['']:13.1f}"
        for name in states:
            parts = [statistics.median(times[name][i::5]) / statistics.median(times[""][i::5]) for i in range(5)]
            quotients[name].append(medians[name] / medians[""])
            line += f"{1e6 * medians[name]:14.1f}{quotients[name][-1]:10.2f}  ({min(parts):.2f}, {max(parts):.2f})   "
        if rank == 0:
            print(line, flush=True)
        kib *= 4
    if rank == 0:
        for name, of_state in quotients.items():
            print(f"{name}: geometric mean {math.exp(statistics.mean(map(math.log, of_state))):.2f}, worst {max(of_state):.2f}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
