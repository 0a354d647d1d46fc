# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchft: processes.py 2 python3 -m pytest test_torchft.py"""

import pytest
import torch
import torch.distributed

import adasum.torch
from pages import run_example
from ranks import batch_of, loss_of, network, require_trained, world

torchft = pytest.importorskip("torchft")
LighthouseServer = pytest.importorskip("torchft.coordination").LighthouseServer
pytestmark = pytest.mark.usefixtures("process_group")


def test_torchft(monkeypatch):
    """Process 1 joins process 0: in the first step, it takes the parameters of that, and its gradient is zero. The
    second step fails because process 1 has NaN: both skip it, and have a new process group afterwards."""
    rank, size = world()
    states = []

    class State(adasum.torch.State):
        def __init__(self, group):
            super().__init__(group, nonfinite="raise")
            states.append(self)

    monkeypatch.setattr(adasum.torch, "State", State)
    lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=size) if rank == 0 else None
    address = [lighthouse and lighthouse.address()]
    torch.distributed.broadcast_object_list(address)
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    addresses = {"replica_id": str(rank), "rank": 0, "world_size": 1, "store_addr": "127.0.0.1", "store_port": store.port,
                 "lighthouse_addr": address[0], "hostname": "127.0.0.1"}
    batches = [[batch_of(rank, step) for step in range(4)] for rank in range(size)]
    batches[1][1][0].fill_(torch.nan)
    model = network()
    names = run_example("docs/pytorch_frameworks.md", "torchft", torch=torch, model=model, load=model.load_state_dict,
                        save=model.state_dict, addresses=addresses, batches=batches[rank], loss_of=loss_of)
    counted = [[(rank == 0 or step > 0, of_rank[step]) for step in (0, 2, 3)] for rank, of_rank in enumerate(batches)]
    require_trained(model.parameters(), counted, loss_of=lambda model, batch: batch[0] * loss_of(model, batch[1]))
    assert len(states) == 2
    torch.distributed.barrier()
    names["manager"].shutdown()
