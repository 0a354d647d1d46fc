# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import datetime
import os

import numpy
import pytest


def pytest_addoption(parser):
    parser.addoption("--kernels", default="auto", help="by what every State reduces, unless a test says it")
    parser.addoption("--folder", help="of traces")
    parser.addoption("--backend", help="of the default process group, if not that of the device")
    parser.addoption("--device", default="cpu", help="where tensors are made, unless a test says it: cpu, emulated, cuda")


def pytest_configure(config):
    device = config.getoption("device")
    if device == "emulated":
        import emulated_device  # noqa: F401, makes it known to PyTorch
    if device != "cpu":
        import torch

        torch.set_default_device(device)
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())


def pytest_collection_modifyitems(config, items):
    if config.getoption("device") != "emulated":
        return
    import emulated_device

    for item in items:
        if any(word in item.name for word in emulated_device.lacks):
            item.add_marker(pytest.mark.skip(reason="not on the emulated device"))


@pytest.fixture(scope="session", autouse=True)
def usual_kernels(pytestconfig):
    kernels = pytestconfig.getoption("kernels")
    if kernels == "auto":
        return
    import adasum.torch

    adasum.torch.State.__init__.__kwdefaults__["kernels"] = kernels


@pytest.fixture(autouse=True)
def everything_waits(pytestconfig):
    """On the emulated device: no stream used what another had not finished with."""
    yield
    if pytestconfig.getoption("device") == "emulated":
        import emulated_device
        import torch

        assert not emulated_device.complaints()
        torch.accelerator.synchronize()  # what a test has left behind, with an exception for example, is not the next one's


@pytest.fixture
def random():
    return numpy.random.default_rng(1)


@pytest.fixture(scope="session")
def process_group(pytestconfig):
    """PyTorch's default one, of the processes that processes.py starts."""
    import torch.distributed

    torch.set_num_threads(1)
    torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = 256  # so that the tests' small networks have several buckets
    usual = {"cpu": "gloo", "emulated": "emulated_ccl", "cuda": "nccl"}[pytestconfig.getoption("device")]
    backend = pytestconfig.getoption("backend") or usual
    torch.distributed.init_process_group(backend, timeout=datetime.timedelta(seconds=60))
    yield
    torch.distributed.destroy_process_group()
