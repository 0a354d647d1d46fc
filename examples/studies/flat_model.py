# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model whose parameters are one vector."""

import torch


class FlatModel:
    """The parameters of a module, laid out one after another in one vector.

    weights: that vector, a parameter itself, so that any optimizer of torch.optim works on it.
    lengths: of the module's parameters, in the order of the vector; the segments of a gradient."""

    def __init__(self, module):
        self.module = module
        self._parameters = list(module.parameters())
        self.lengths = [parameter.numel() for parameter in self._parameters]
        self.weights = torch.nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in self._parameters]))
        for parameter, part in self._parts_of(self.weights.data):
            parameter.data = part

    def gradient(self, loss_of, batch, out):
        """Writes the gradient of loss_of(module, batch) to the vector `out`, and returns the loss."""
        out.zero_()
        for parameter, part in self._parts_of(out):
            parameter.grad = part  # where backward() adds
        loss = loss_of(self.module, batch)
        loss.backward()
        return loss.item()

    def _parts_of(self, vector):
        """Each parameter, with its part of a vector in its shape."""
        return [(parameter, part.view_as(parameter)) for parameter, part in zip(self._parameters, vector.split(self.lengths))]
