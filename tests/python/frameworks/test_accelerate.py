# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accelerate: processes.py 2 python3 -m pytest test_accelerate.py"""

import pytest
import torch

from pages import run_example
from ranks import batch_of, loss_of, network, require_trained

accelerate = pytest.importorskip("accelerate")
batches = [[batch_of(rank, step) for step in range(4)] for rank in range(2)]


@pytest.mark.parametrize("accumulated", [1, 2])
def test_accelerate(accumulated, monkeypatch):
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", str(accumulated))
    model = network()
    in_turn = [batch for of_step in zip(*batches) for batch in of_step]  # as Accelerate gives them to the processes
    data = torch.utils.data.TensorDataset(*(torch.cat(parts) for parts in zip(*in_turn)))
    run_example("docs/pytorch_frameworks.md", "Accelerate", model=model, loss_of=loss_of,
                optimizer=torch.optim.SGD(model.parameters(), lr=0.1), batches=torch.utils.data.DataLoader(data, batch_size=4))
    of_steps = [[own[step:step + accumulated] for step in range(0, 4, accumulated)] for own in batches]
    require_trained(model.parameters(), of_steps,
                    loss_of=lambda model, of_step: sum(loss_of(model, batch) for batch in of_step) / accumulated)
