# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import numpy
import pytest


@pytest.fixture
def random():
    return numpy.random.default_rng(1)
