# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import datetime

import numpy
import pytest


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
