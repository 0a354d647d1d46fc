# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples of docs/mixed_precision.md among processes: processes.py N python3 -m pytest test_mixed_precision.py"""

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import adasum.torch
from pages import run_example
from ranks import batch_of, combined, gradients_of, loss_of, network, require_same_bits, require_trained, world

pytestmark = pytest.mark.usefixtures("process_group")
page = "docs/mixed_precision.md"


@pytest.fixture
def batches():
    """Of each process."""
    return [[batch_of(rank, step) for step in range(4)] for rank in range(world()[1])]


@pytest.fixture
def run(batches):
    """Runs an example, and returns the names that there are then."""
    def run_it(*which, loss_of=loss_of):
        model = network()
        ddp = DistributedDataParallel(model)
        ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
        return run_example(page, *which, torch=torch, adasum=adasum, model=model, ddp=ddp, loss_of=loss_of,
                           batches=batches[world()[0]], optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    return run_it


def clipped(gradients):
    norm = torch.cat([gradient.reshape(-1) for gradient in gradients]).norm()
    return [gradient * min(1, 0.5 / norm) for gradient in gradients]


def with_autocast(dtype):
    def loss(model, batch):
        with torch.autocast("cpu", dtype=dtype):
            return loss_of(model, batch)
    return loss


# Where parameters differ by a rounding of float32, one of their roundings to bfloat16 may differ, by 2^-8 of the number. So a
# gradient of about 1 may differ by some 2^-8, and four steps of 0.1 times that by 2e-3.
of_bfloat16 = 2e-3


def test_autocast(run, batches):
    require_trained(run("Autocast")["model"].parameters(), batches, loss_of=with_autocast(torch.bfloat16), atol=of_bfloat16)


@pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="this PyTorch has no GradScaler for the CPU")
def test_gradient_scaler(run, batches):
    """All skip the steps in which the scale is too high."""
    biases = []

    def loss(ddp, batch):
        biases.append(ddp.module[2].bias.tolist())
        return loss_of(ddp, batch)

    model = run("Gradient scalers", loss_of=loss)["model"]
    biases.append(model[2].bias.tolist())
    taken = [step for step in range(4) if biases[step] != biases[step + 1]]
    assert 0 < len(taken) < 4
    require_trained(model.parameters(), [[of_rank[step] for step in taken] for of_rank in batches],
                    loss_of=with_autocast(torch.float16), atol=of_bfloat16)


@pytest.mark.skipif(torch.__version__ < "2", reason="gloo of this PyTorch sends no bfloat16")
@pytest.mark.parametrize("in_float32", [False, True])
def test_bfloat16_parameters(in_float32, monkeypatch):
    def make():
        return network().to(torch.bfloat16)

    def own_loss(model, batch):
        return loss_of(model, [one.bfloat16() for one in batch])

    reduced, hook = [], adasum.torch.hook
    monkeypatch.setattr(adasum.torch, "hook", lambda state, bucket: reduced.append(bucket.buffer().dtype) or hook(state, bucket))
    model = make()
    ddp = DistributedDataParallel(model)
    if in_float32:
        run_example(page, "bfloat16 parameters", adasum=adasum, ddp=ddp)
    else:
        ddp.register_comm_hook(adasum.torch.State(), adasum.torch.hook)
    own_loss(ddp, batch_of(world()[0])).backward()
    found = [parameter.grad for parameter in model.parameters()]
    assert set(reduced) == {torch.float32 if in_float32 else torch.bfloat16} and found[0].dtype == torch.bfloat16
    require_same_bits(found)
    of_ranks = [gradients_of(rank, make=make, loss_of=own_loss) for rank in range(world()[1])]
    expected = combined([[gradient.float() for gradient in gradients] for gradients in of_ranks])
    for one, other in zip(found, expected):  # rounded to 8 bits
        torch.testing.assert_close(one.float(), other, rtol=2 ** -8, atol=0)


def test_accumulation(run, batches):
    """Of four batches, of which one step is made."""
    require_trained(run("Accumulate gradients")["model"].parameters(), [[of_rank] for of_rank in batches],
                    loss_of=lambda model, parts: sum(loss_of(model, part) for part in parts) / 4)


def test_clipping_after(run, batches):
    require_trained(run("Clip gradients", 0)["model"].parameters(), batches, after=clipped)


def test_clipping_before(run, batches):
    """Without the hook: DistributedDataParallel is not called here."""
    require_trained(run("Clip gradients", 1)["model"].parameters(), batches, before=clipped)


def test_clipping_in_a_hook(batches):
    ddp = DistributedDataParallel(network())
    run_example(page, "Clip gradients", 2, adasum=adasum, ddp=ddp)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for batch in batches[world()[0]]:
        optimizer.zero_grad()
        loss_of(ddp, batch).backward()
        optimizer.step()
    require_trained(ddp.parameters(), batches, before=lambda gradients: [clipped([one])[0] for one in gradients])
