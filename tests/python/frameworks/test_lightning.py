# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lightning: processes.py 2 python3 -m pytest test_lightning.py"""

import pytest
import torch

import adasum.torch
from pages import run_example
from ranks import batch_of, loss_of, network, require_close, require_trained, train_alone, world

lightning = pytest.importorskip("lightning")
settings = {"max_epochs": 1, "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
            "enable_model_summary": False}
batches = [[batch_of(rank, step) for step in range(3)] for rank in range(2)]


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = network()

    def training_step(self, batch, number):
        return loss_of(self.network, batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Own:
    """Each process's batches, as a loader that Lightning does not change."""

    def __iter__(self):
        return iter(batches[world()[0]])


def test_callback():
    module = Module()
    run_example("docs/pytorch_frameworks.md", "Lightning", module=module, batches=Own(), settings=settings)
    require_trained(module.parameters(), batches)


def test_arguments_of_the_strategy_on_the_cpu():
    """They have no effect, as the page says. If this fails, Lightning has learnt to pass them on."""
    module = Module()
    strategy = lightning.pytorch.strategies.DDPStrategy(ddp_comm_state=adasum.torch.State(), ddp_comm_hook=adasum.torch.hook)
    trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy=strategy, **settings)
    trainer.fit(module, Own())
    require_close([parameter.detach() for parameter in module.parameters()], train_alone(batches, "mean"))
