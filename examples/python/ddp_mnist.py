# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a convolutional network on digits with DistributedDataParallel, under one rule after another, and prints how exact
it gets and how long a step takes: DDP's own all-reduce (allreduce_hook) beside Adasum's hook.

    torchrun --nproc_per_node 2 ddp_mnist.py [--data FOLDER] [--rules RULE,RULE,...] [--epochs N]

The two lines that turn an average into adaptive summation are in train()."""

import argparse
import statistics
import time

import torch
import torch.distributed
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
import digits


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 10, 5), torch.nn.Conv2d(10, 20, 5)
        self.fc1, self.fc2 = torch.nn.Linear(320, 50), torch.nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def train(rule, images, labels, chosen):
    """Returns the model and the seconds of each step."""
    torch.manual_seed(chosen.seed)
    model = DistributedDataParallel(Network())
    if rule == "allreduce_hook":
        model.register_comm_hook(None, allreduce_hook)
    else:
        state = adasum.torch.State(rule=rule)
        model.register_comm_hook(state, adasum.torch.hook)

    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=chosen.lr)
    steps_of_epoch = len(images) // (chosen.batch * size)
    steps, seconds = chosen.epochs * steps_of_epoch, []
    for step in range(steps):
        if step % steps_of_epoch == 0:
            order = torch.randperm(len(images))  # the same on all ranks, as the seed is
        optimizer.param_groups[0]["lr"] = chosen.lr * (1 - step / steps)
        mine = order[(step % steps_of_epoch * size + rank) * chosen.batch:][:chosen.batch]
        begin = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(model(images[mine]), labels[mine]).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    return model.module, seconds


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(1) == labels).float().mean().item()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", help="a folder with MNIST's t10k files; digits are generated if there is none")
    arguments.add_argument("--rules", default="adasum,mean,sum,allreduce_hook")
    arguments.add_argument("--images", type=int, default=8192, help="to train on; the others are held out")
    arguments.add_argument("--batch", type=int, default=8, help="of each process")
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--lr", type=float, default=0.05)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()

    torch.distributed.init_process_group("gloo")
    torch.set_num_threads(1)
    images, labels = digits.mnist(chosen.data) if chosen.data else digits.generated(chosen.images + 2000, chosen.seed)
    rank = torch.distributed.get_rank()
    if rank == 0:
        print(f"{torch.distributed.get_world_size()} processes, {chosen.images} images, {chosen.epochs} epochs\n"
              "rule              accuracy  milliseconds a step")
    for rule in chosen.rules.split(","):
        model, seconds = train(rule, images[:chosen.images], labels[:chosen.images], chosen)
        if rank == 0:
            print(f"{rule:<16}  {accuracy(model, images[chosen.images:], labels[chosen.images:]):8.3f}  "
                  f"{1e3 * statistics.median(seconds):8.2f}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
