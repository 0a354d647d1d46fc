# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile: processes.py 2 python3 -m pytest test_compile.py"""

import functools

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
from pages import run_example
from ranks import batch_of, loss_of, network, require_trained, world

pytestmark = pytest.mark.usefixtures("process_group")
batches = [[batch_of(rank, step) for step in range(3)] for rank in range(2)]


class Network(torch.nn.Module):
    """torch.compile around DistributedDataParallel compiles what is in the program's own files."""

    def __init__(self):
        super().__init__()
        self.layers = network()

    def forward(self, x):
        return self.layers(x)


def trained(ddp):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for batch in batches[world()[0]]:
        optimizer.zero_grad()
        loss_of(ddp, batch).backward()
        optimizer.step()
    return [parameter.detach() for parameter in ddp.parameters()]


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager"])
@pytest.mark.parametrize("number", [0, 1])  # of the example: inside, around
def test_same_bits(backend, number, monkeypatch):
    plain = DistributedDataParallel(Network())
    plain.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    found = trained(run_example("docs/pytorch_frameworks.md", "torch.compile", number, torch=torch, model=Network())["ddp"])
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0
    require_trained(found, batches)
    assert all(map(torch.equal, found, trained(plain)))


def test_python_reducer(monkeypatch):
    """Gives the hook single gradients."""
    monkeypatch.setattr(torch._dynamo.config, "optimize_ddp", "python_reducer")
    ddp = DistributedDataParallel(Network())
    ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
    with pytest.raises(adasum.BadInput, match="the hook got no bucket"):
        trained(torch.compile(ddp, backend="eager"))
