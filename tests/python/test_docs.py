# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in docs/pytorch.md run, one after the other: processes.py 4 python3 -m pytest test_docs.py"""

import pathlib
import re

import pytest
import torch
import torch.distributed

import adasum.torch
from test_fsdp import has_hook

pytestmark = pytest.mark.usefixtures("process_group")
page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "pytorch.md"
examples = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(6, 6), torch.nn.Linear(6, 2)])

    def forward(self, x):
        return self.layers[1](torch.relu(self.layers[0](x)))


def test_there_are_examples():
    assert len(examples) > 3 and sum("State(" in example for example in examples) > 1


@pytest.mark.parametrize("number", range(len(examples)))
def test_example(number):
    """With the names that the page speaks of."""
    example = examples[number].replace('torch.distributed.init_process_group("gloo")\n', "")
    if "fully_shard" in example and not has_hook:
        pytest.skip("this PyTorch has no FSDPModule.set_all_reduce_hook")
    if "GradScaler" in example and not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this PyTorch has no GradScaler for the CPU")
    model = Model()
    torch.manual_seed(torch.distributed.get_rank())
    names = {"torch": torch, "adasum": adasum, "model": model, "batches": [torch.randn(4, 6) for _ in range(3)],
             "loss_of": lambda model, batch: model(batch).square().mean()}
    if "ddp = " not in example:
        names["ddp"] = torch.nn.parallel.DistributedDataParallel(model)
        names["ddp"].register_comm_hook(adasum.torch.State(), adasum.torch.hook)
        names["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.01)
    before = model.layers[0].weight.detach().clone()
    exec(compile(example, f"{page.name}, example {number + 1}", "exec"), names)
    if "step()" in example:
        after = model.layers[0].weight.detach()
        assert not torch.equal(before, after.full_tensor() if hasattr(after, "full_tensor") else after)
