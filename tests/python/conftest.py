# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import datetime

import numpy
import pytest


def pytest_addoption(parser):
    parser.addoption("--kernels", default="auto", help="by what every State reduces, unless a test says it")


@pytest.fixture(scope="session", autouse=True)
def usual_kernels(pytestconfig):
    kernels = pytestconfig.getoption("kernels")
    if kernels == "auto":
        return
    import adasum.torch

    adasum.torch.State.__init__.__kwdefaults__["kernels"] = kernels


@pytest.fixture
def random():
    return numpy.random.default_rng(1)


@pytest.fixture(scope="session")
def process_group():
    """PyTorch's default one, of the processes that processes.py starts."""
    import torch.distributed

    torch.set_num_threads(1)
    torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = 256  # so that the tests' small networks have several buckets
    torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    yield
    torch.distributed.destroy_process_group()
