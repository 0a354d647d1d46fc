# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples for PyTorch in pages run, one after the other: processes.py 4 python3 -m pytest test_docs.py"""

import pytest
import torch
import torch.distributed

import adasum.torch
from pages import examples_of
from ranks import require_same_bits
from test_fsdp import has_hook

pytestmark = pytest.mark.usefixtures("process_group")
examples = [one for page in ("docs/pytorch.md", "docs/index.md", "README.md") for one in examples_of(page)
            if page == "docs/pytorch.md" or "adasum.torch" in one[1]]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(6, 6), torch.nn.Linear(6, 2)])
        self.norm = torch.nn.BatchNorm1d(6)

    def forward(self, x):
        return self.layers[1](torch.relu(self.norm(self.layers[0](x))))


def test_there_are_examples():
    assert len(examples) > 5 and sum("State(" in example for _, example in examples) > 3


@pytest.mark.parametrize("number", range(len(examples)))
def test_example(number, tmp_path, monkeypatch):
    """With the names that the page speaks of."""
    monkeypatch.chdir(tmp_path)
    name, example = examples[number]
    example = example.replace('torch.distributed.init_process_group("gloo")\n', "")
    if "fully_shard" in example and not has_hook:
        pytest.skip("this PyTorch has no FSDPModule.set_all_reduce_hook")
    if "GradScaler" in example and not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this PyTorch has no GradScaler for the CPU")
    model = Model()
    torch.manual_seed(torch.distributed.get_rank())
    names = {"torch": torch, "adasum": adasum, "model": model, "batches": [torch.randn(4, 6) for _ in range(4)],
             "loss_of": lambda model, batch: model(batch).square().mean()}
    if "ddp = " not in example:
        names["ddp"] = torch.nn.parallel.DistributedDataParallel(model)
        if "register_comm_hook" not in example:
            names["ddp"].register_comm_hook(adasum.torch.State(), adasum.torch.hook)
        names["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.01)
        names["scheduler"] = torch.optim.lr_scheduler.ConstantLR(names["optimizer"])
    before = model.layers[0].weight.detach().clone()
    if "running_mean" in example:
        model(names["batches"][0])
        mean, variance = model.norm.running_mean.clone(), model.norm.running_var.clone()
    exec(compile(example, name, "exec"), names)
    if "step()" in example:
        after = model.layers[0].weight.detach()
        assert not torch.equal(before, after.full_tensor() if hasattr(after, "full_tensor") else after)
    if "running_mean" in example:
        assert not torch.equal(model.norm.running_mean, mean) and not torch.equal(model.norm.running_var, variance)
        require_same_bits([model.norm.running_mean, model.norm.running_var])
