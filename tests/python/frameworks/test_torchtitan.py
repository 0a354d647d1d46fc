# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FSDP2 as torchtitan applies it: processes.py 4 python3 -m pytest test_torchtitan.py"""

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh

import adasum.torch
from pages import run_example
from ranks import batch_of, loss_of, require_trained, world

fsdp = pytest.importorskip("torchtitan.distributed.fsdp")
pytestmark = pytest.mark.usefixtures("process_group")


class Decoder(torch.nn.Module):
    """What torchtitan's models have in common. It gives fully_shard the last two modules together."""

    enable_weight_tying = False

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.tok_embeddings = torch.nn.Linear(10, 16)
        self.layers = torch.nn.ModuleDict({str(number): torch.nn.Linear(16, 16) for number in range(2)})
        self.norm = torch.nn.LayerNorm(16)
        self.lm_head = torch.nn.Linear(16, 3)

    def forward(self, x):
        x = self.tok_embeddings(x)
        for layer in self.layers.values():
            x = torch.tanh(layer(x))
        return self.lm_head(self.norm(x))


def test_two_replicas_of_two_shards():
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_replicate", "fsdp"))
    model = Decoder()
    run_example("docs/pytorch_frameworks.md", "torchtitan", torch=torch, model=model, mesh=mesh)
    for module in model.modules():
        if isinstance(module, torch.distributed.fsdp.FSDPModule):
            module.set_force_sum_reduction_for_comms(True)  # gloo cannot multiply while it adds
    batches = [[batch_of(rank, step) for step in range(3)] for rank in range(4)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches[world()[0]]:
        optimizer.zero_grad()
        (loss_of(model, batch) / 2).backward()  # by what one replica has
        optimizer.step()
    replicas = [list(zip(*batches[:2])), list(zip(*batches[2:]))]
    require_trained([parameter.full_tensor() for parameter in model.parameters()], replicas, make=Decoder,
                    loss_of=lambda model, shards: sum(loss_of(model, batch) for batch in shards) / 2)


def test_unchanged():
    """It averages over replicas, which is an error."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_replicate", "fsdp"))
    model = Decoder()
    fsdp.apply_fsdp_to_decoder(model, mesh, torch.float32, torch.float32, pp_enabled=False)
    with pytest.raises(adasum.BadInput, match="fully_shard got both dimensions of the mesh"):
        adasum.torch.apply_to_fsdp(model, mesh)
