# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Digits, as in the authors' slides: a CNN of two convolutions, two epochs, batches of 8 and of 32 for each worker, SGD with a
momentum of 0.9 and warm-up, 4 to 64 workers. How many are recognised that were held out, with the learning rate that is best
for one worker, and with the one that is best for the method and the number of workers?"""

import dataclasses
import functools

import models
import problems
import reporting
from runs import Results, Runner, Task, last_error
from training import Setting

methods = ["mean", "adasum", "adasum of steps"]
workers = [4, 8, 16, 32, 64]
batches = [8, 32]
seeds = [1, 2, 3]


def main(chosen):
    problem = functools.partial(problems.Images, models.DigitNetwork, chosen.data)
    runner = Runner(Task(problem, Results(chosen.out / "mnist.csv"), evaluations=8), chosen)
    alone = {batch: Setting(1, batch, "momentum", "mean", 0.01, 2, 0) for batch in batches}
    best_alone = runner.tune(alone.values(), "rates of one worker")
    many = [dataclasses.replace(best_alone[alone[batch]], workers=count, method=method)
            for batch in batches for count in workers for method in methods]
    best = runner.tune(many, "rates of many workers")

    def with_seeds(setting):
        return [dataclasses.replace(setting, seed=seed) for seed in seeds]

    known = runner.run([run for setting in [*best_alone.values(), *many, *best.values()] for run in with_seeds(setting)],
                       "three seeds")

    def accuracies(setting):
        return [1 - last_error(known[run]) for run in with_seeds(setting)]

    for batch in batches:
        one = best_alone[alone[batch]]
        rows = []
        for count in workers:
            of_count = [setting for setting in many if (setting.workers, setting.batch) == (count, batch)]
            own_rates = [best[setting] for setting in of_count]
            rows.append([count, *(reporting.spread(accuracies(setting), 3) for setting in of_count),
                         *(f"{reporting.spread(accuracies(setting), 3)} at {setting.rate:g}" for setting in own_rates)])
        print(f"Batch {batch}; one worker alone: {reporting.spread(accuracies(one), 3)} at {one.rate:g}\n\n" + reporting.table(
            ["workers", *(f"{reporting.labels[m]}, rate of one worker" for m in methods),
             *(f"{reporting.labels[m]}, own rate" for m in methods)], rows))

    def errors(setting):
        return [100 * last_error(known[run]) for run in with_seeds(setting)]

    def draw(figure, grid, theme):
        for row, batch in zip(grid, batches):
            for axes, rates, title in zip(row, ({}, best), ("the rate of one worker", "the best rate of each")):
                one = errors(best_alone[alone[batch]])
                for method in methods:
                    settings = [setting for setting in many if (setting.method, setting.batch) == (method, batch)]
                    reporting.draw_spread(axes, [1, *workers], [one, *(errors(rates.get(s, s)) for s in settings)],
                                          **reporting.line_style(method, theme))
                axes.set_title(f"batch {batch} for each worker, {title}")
                reporting.errors_axis(axes, 2)
                reporting.workers_axis(axes, [1, *workers])
            row[0].set_ylabel("errors on held-out images, %")
        grid[0][0].legend()

    def draw_rates(figure, grid, theme):
        for row, batch in zip(grid, batches):
            for axes, count in zip(row, (8, 32, 64)):
                of_count = [setting for setting in many if (setting.workers, setting.batch) == (count, batch)]
                reporting.draw_rates(axes, known, of_count, lambda run: 100 * last_error(run), theme)
                axes.set_title(f"{count} workers, batch {batch}")
                reporting.errors_axis(axes, 2)
            row[0].set_ylabel("errors on held-out images, %")
        grid[0][0].legend()

    reporting.picture_style.save(chosen.out / "mnist", draw, (10, 7), nrows=2, ncols=2, sharey=True)
    reporting.picture_style.save(chosen.out / "mnist_rates", draw_rates, (11, 7), nrows=2, ncols=3, sharey=True)


def quick(chosen):
    problem = functools.partial(problems.Images, models.DigitNetwork, training=1024, held_out=512)
    runner = Runner(Task(problem, Results(chosen.out / "mnist.csv"), evaluations=1), chosen)
    settings = [Setting(count, 8, "momentum", method, 0.02, 2, 1) for count, method in
                [(1, "mean"), (8, "mean"), (8, "adasum")]]
    known = runner.run(settings, "mnist, quick")
    alone, mean, adasum = (1 - last_error(known[setting]) for setting in settings)
    print(f"accuracy: one worker {alone:.3f}, 8 workers: mean {mean:.3f}, Adasum {adasum:.3f}")
    losses = [known[setting][place].loss for setting in settings for place in (0, -1)]
    return 0 if adasum > mean and all(last < first for first, last in zip(losses[::2], losses[1::2])) else 1
