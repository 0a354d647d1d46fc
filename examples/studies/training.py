# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data-parallel training, with all workers in one process."""

import dataclasses
import math

import torch

import adasum
from flat_model import FlatModel
from optimizers import optimizer_of


@dataclasses.dataclass(frozen=True)
class Method:
    """What the workers' vectors are, and how they are combined."""

    rule: str
    """One of adasum.rules(), with its parameters"""
    of_steps: bool = False
    """Whether workers take a step of their own optimizer, and these steps are combined (the paper's way for optimizers that
    have a state). Otherwise their gradients are combined, and one optimizer takes a step."""
    segments: str = "layers"
    """What is weighed by itself: each of the model's layers, or each of the problem's rows (words)"""


METHODS = {
    "mean": Method("mean"),
    "sum": Method("sum"),
    "adasum": Method("adasum"),
    "adasum of rows": Method("adasum", segments="rows"),
    "adacons": Method("adacons:scale=mean_norm"),
    "adasum of steps": Method("adasum", of_steps=True),
    "mean of steps": Method("mean", of_steps=True),
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """One training run. With the same setting, on the same machine, it gives the same numbers."""

    workers: int
    batch: int
    """Examples of each worker in each local step"""
    optimizer: str
    method: str
    rate: float
    """The highest learning rate: it rises to that, then falls to 0, both linearly"""
    epochs: float
    seed: int
    warmup: float = 0.1
    """The part of all steps in which the rate rises"""
    local_steps: int = 1
    """How many steps workers take before these are combined"""
    outer_rate: float = 1.0
    outer_momentum: float = 0.0
    """Combined steps are taken by SGD with Nesterov's momentum, as in DiLoCo. With 1 and 0: as they are"""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a model was worth after some rounds."""

    round: int
    rounds: int
    examples: int
    loss: float
    """On what was held out"""
    error: float
    """The part of the held-out examples that are classified wrongly; nan where nothing is classified"""
    orthogonality: float
    """|combined|^2 / sum of |g_i|^2 in that round: 1 if all are orthogonal, 1/workers if they are equal. nan in round 0"""


def rate_at(setting, step, steps):
    """Linear warm-up, then linear decay."""
    rising = max(1.0, setting.warmup * steps)
    return setting.rate * min(1.0, (step + 1) / rising, (steps - step) / max(1.0, steps - rising))


def train(problem, setting, evaluations, keep=lambda module: None):
    """Trains a model, and evaluates it at the beginning, `evaluations` times on the way (if there are as many rounds), the last
    time at the end.

    problem: see problems.py. keep: is given the trained module.
    Returns a list of Evaluations. A run whose loss leaves the range of numbers ends early, with an infinite loss."""
    method = METHODS[setting.method]
    torch.manual_seed(setting.seed)
    model = FlatModel(problem.model())
    segments = model.lengths if method.segments == "layers" else problem.rows_of(model.module)
    batches = problem.batches(setting.batch, setting.epochs, setting.seed)
    rounds = len(batches) // (setting.workers * setting.local_steps)
    if rounds == 0:
        raise ValueError(f"too few examples for one round: {setting}")

    # With combined gradients all workers have one optimizer; with combined steps, each has its own.
    optimizers = [optimizer_of(setting.optimizer, model) for _ in range(setting.workers if method.of_steps else 1)]
    outer = torch.optim.SGD([model.weights], lr=setting.outer_rate, momentum=setting.outer_momentum,
                            nesterov=setting.outer_momentum > 0)
    vectors = torch.empty(setting.workers, model.weights.numel())
    combined = torch.empty(model.weights.numel())
    found = [_evaluated(problem, model, 0, rounds, 0, math.nan)]

    for done in range(rounds):
        first = done * setting.workers * setting.local_steps
        of_round = batches[first:first + setting.workers * setting.local_steps]
        rates = [rate_at(setting, done * setting.local_steps + k, rounds * setting.local_steps)
                 for k in range(setting.local_steps)]
        if method.of_steps:
            _local_steps(problem, model, optimizers, of_round, rates, vectors)
        else:
            for vector, batch in zip(vectors, of_round):
                model.gradient(problem.loss, batch, vector)
        orthogonality = _combine(method, vectors, combined, segments)
        if method.of_steps:
            model.weights.grad = combined.neg()
            outer.step()
        else:
            model.weights.grad = combined
            _take_step(optimizers[0], rates[0])

        at_end = done + 1 == rounds
        if at_end or (done + 1) * evaluations // rounds != done * evaluations // rounds:
            found.append(_evaluated(problem, model, done + 1, rounds, (first + len(of_round)) * setting.batch, orthogonality))
            if not math.isfinite(found[-1].loss):
                found[-1] = dataclasses.replace(found[-1], round=rounds, loss=math.inf)
                break
    keep(model.module)
    return found


def _local_steps(problem, model, optimizers, batches, rates, steps):
    """From the same weights, each worker takes len(rates) steps. Their sums go to the rows of `steps`."""
    start, gradient = model.weights.detach().clone(), torch.empty_like(steps[0])
    for worker, (optimizer, step) in enumerate(zip(optimizers, steps)):
        for k, rate in enumerate(rates):
            model.gradient(problem.loss, batches[k * len(optimizers) + worker], gradient)
            model.weights.grad = gradient
            _take_step(optimizer, rate)
        torch.sub(model.weights.data, start, out=step)
        model.weights.data.copy_(start)


def _take_step(optimizer, rate):
    optimizer.param_groups[0]["lr"] = rate
    optimizer.step()


def _combine(method, vectors, out, segments):
    """Returns the orthogonality."""
    if len(vectors) == 1:
        out.copy_(vectors[0])
        return 1.0
    adasum.combine(list(vectors), out, rule=method.rule, segments=segments, measure="when_needed")
    squares = vectors.square().sum().item()
    return out.square().sum().item() / squares if squares > 0 else math.nan


@torch.no_grad()
def _evaluated(problem, model, done, rounds, examples, orthogonality):
    model.module.eval()
    loss, error = problem.evaluate(model.module)
    model.module.train()
    return Evaluation(done, rounds, examples, loss, error, orthogonality)
