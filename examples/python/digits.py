# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images of digits: MNIST's t10k files, or generated ones."""

import gzip
import pathlib
import struct

import numpy
import torch

_font = ["01110100011001110101110011000101110", "00100011000010000100001000010001110",
         "01110100010000100010001000100011111", "11111000100010000010000011000101110",
         "00010001100101010010111110001000010", "11111100001111000001000011000101110",
         "00110010001000011110100011000101110", "11111000010001000100010000100001000",
         "01110100011000101110100011000101110", "01110100011000101111000010001001100"]
"""Each digit in 7 rows of 5"""


def generated(count, seed):
    """Digits anywhere in noise."""
    random = numpy.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    images = random.normal(0, 0.3, (count, 28, 28))
    for image, label in zip(images, labels):
        ink = numpy.array([int(dot) for dot in _font[label]]).reshape(7, 5).repeat(3, 0).repeat(3, 1)
        top, left = random.integers(0, 28 - 21 + 1), random.integers(0, 28 - 15 + 1)
        image[top:top + 21, left:left + 15] += ink * random.uniform(0.6, 1.2)
    return _tensors(images.clip(0, 1), labels)


def mnist(folder):
    """The t10k files of a folder, gzipped or not."""

    def read(name, magic, dimensions):
        path = next((found for suffix in ("", ".gz") if (found := pathlib.Path(folder) / (name + suffix)).exists()), None)
        if path is None:
            raise SystemExit(f"{folder}: there is no {name}, gzipped or not")
        data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        found, *shape = struct.unpack_from(f">{1 + dimensions}i", data)
        if found != magic:
            raise SystemExit(f"{path}: not a file of MNIST's")
        return numpy.frombuffer(data, numpy.uint8, offset=4 * (1 + dimensions)).reshape(shape)

    return _tensors(read("t10k-images-idx3-ubyte", 2051, 3) / 255.0, read("t10k-labels-idx1-ubyte", 2049, 1))


def _tensors(images, labels):
    return torch.tensor(images, dtype=torch.float32).unsqueeze(1), torch.tensor(labels, dtype=torch.int64)
