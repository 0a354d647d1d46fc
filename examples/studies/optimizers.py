# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers by name, of one vector of weights."""

import torch


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al., ICLR 2020, Algorithm 2): a step of Adam, which each layer takes with the length of its own weights.

    u = m / (sqrt(v) + eps) + weight_decay w;  w <- w - rate * |w| / |u| * u, layer by layer, with bias correction of m and v.
    Where |w| or |u| is 0, their ratio counts as 1.
    lengths: of the layers in the vector."""

    def __init__(self, vector, lengths, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__([vector], dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self._lengths = lengths

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        vector, = group["params"]
        state = self.state[vector]
        if not state:
            state.update(step=0, m=torch.zeros_like(vector), v=torch.zeros_like(vector))
        state["step"] += 1
        beta1, beta2 = group["betas"]
        state["m"].mul_(beta1).add_(vector.grad, alpha=1 - beta1)
        state["v"].mul_(beta2).addcmul_(vector.grad, vector.grad, value=1 - beta2)
        update = state["m"] / (1 - beta1 ** state["step"])
        update /= (state["v"] / (1 - beta2 ** state["step"])).sqrt_().add_(group["eps"])
        update.add_(vector, alpha=group["weight_decay"])
        for weights, change in zip(vector.split(self._lengths), update.split(self._lengths)):
            of_weights, of_change = weights.norm().item(), change.norm().item()
            trust = of_weights / of_change if of_weights > 0 and of_change > 0 else 1.0
            weights.add_(change, alpha=-group["lr"] * trust)


def optimizer_of(name, model):
    """sgd, momentum, adam or lamb, for the weights of a FlatModel. Its rate is set before each step."""
    vector = model.weights
    return {
        "sgd": lambda: torch.optim.SGD([vector], lr=0.0),
        "momentum": lambda: torch.optim.SGD([vector], lr=0.0, momentum=0.9),
        "adam": lambda: torch.optim.AdamW([vector], lr=0.0, weight_decay=0.01),
        "lamb": lambda: Lamb(vector, model.lengths, lr=0.0),
    }[name]()
