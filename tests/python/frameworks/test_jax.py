# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX, on four devices of one process: python3 -m pytest test_jax.py"""

import os

import numpy
import pytest

import adasum
from pages import run_example

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
jax = pytest.importorskip("jax")


def loss_of(params, batch):
    x, y = batch
    return jax.numpy.square(jax.numpy.tanh(x @ params["w"]) @ params["v"] - y).mean()


@pytest.fixture
def params(random):
    return {name: random.normal(size=shape).astype("f4") for name, shape in (("v", 5), ("w", (3, 5)))}


@pytest.fixture
def batches(random):
    """Two rows for each device."""
    return [(random.normal(size=(8, 3)).astype("f4"), random.normal(size=8).astype("f4")) for _ in range(50)]


def trained_on_one_device(params, batches):
    gradient_of = jax.jit(jax.grad(loss_of))
    for x, y in batches:
        gradients = [gradient_of(params, (x[part:part + 2], y[part:part + 2])) for part in range(0, 8, 2)]
        combined = {name: adasum.tree([one[name] for one in gradients])[0] for name in params}
        params = {name: params[name] - numpy.float32(0.1) * combined[name] for name in params}
    return params


def test_training(params, batches):
    expected = trained_on_one_device(params, batches)
    assert loss_of(expected, batches[0]) < loss_of(params, batches[0])
    names = {"params": params, "batches": batches, "loss_of": loss_of}
    outside = run_example("docs/python.md", "Between compiled functions", **names)
    inside = run_example("docs/python.md", "In a compiled function", **(outside | names))
    for found in (outside["params"], inside["params"]):
        for name in params:
            for shard in found[name].addressable_shards:
                numpy.testing.assert_allclose(shard.data, expected[name], rtol=1e-4, atol=1e-5)


def test_arrays():
    one = jax.numpy.arange(4.0)
    assert adasum.pair(one, one).tolist() == [0, 1, 2, 3]
    with pytest.raises(adasum.BadInput, match="cannot take the result: it is read-only"):
        adasum.pair(one, one, out=one)
    short = one.astype(jax.numpy.bfloat16)
    assert adasum.pair(short, short, numpy.empty(4, jax.numpy.bfloat16)).tolist() == [0, 1, 2, 3]
    with pytest.raises(adasum.BadInput, match="Sharding over 4 devices"):
        adasum.pair(jax.device_put(one, jax.NamedSharding(jax.make_mesh((4,), ("data",)), jax.P("data"))), one)
