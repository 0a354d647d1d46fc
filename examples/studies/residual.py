# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A residual network on digits, trained until 97.5 % of the held-out images are recognised: how many epochs does that take, by
batch size and method? It is the form of the authors' table for ResNet-50 on ImageNet (Maleki et al., section 5), with the best
rate of each: SGD with a momentum of 0.9 and warm-up, 32 images for each worker, at most 20 epochs."""

import dataclasses
import functools
import math
import statistics

import models
import problems
import reporting
from runs import Results, Runner, Task
from training import Setting

methods = ["mean", "adasum", "adasum of steps"]
workers = [8, 16, 32, 64]
most_epochs, target = 20, 0.975
seeds = [1, 2, 3]


def epochs_needed(run):
    """Until the target was reached; infinite if it was not."""
    images = run[-1].examples
    return next((evaluation.examples * most_epochs / images for evaluation in run if 1 - evaluation.error >= target), math.inf)


def epochs_then_error(run):
    return min(epochs_needed(run), 1000.0) + run[-1].error


def main(chosen):
    problem = functools.partial(problems.Images, models.ResidualNetwork, chosen.data)
    runner = Runner(Task(problem, Results(chosen.out / "residual.csv"), most_epochs, goal=epochs_then_error), chosen)
    alone = Setting(1, 32, "momentum", "mean", 0.04, most_epochs, 0)
    best_alone = runner.tune([alone], "rates of one worker")[alone]
    many = [dataclasses.replace(best_alone, workers=count, method=method) for count in workers for method in methods]
    best = runner.tune(many, "rates of many workers")

    def with_seeds(setting):
        return [dataclasses.replace(setting, seed=seed) for seed in seeds]

    known = runner.run([run for setting in [best_alone, *best.values()] for run in with_seeds(setting)], "three seeds")

    def shown(setting):
        runs = [known[run] for run in with_seeds(setting)]
        needed = [epochs_needed(run) for run in runs]
        text = ", ".join("–" if math.isinf(epochs) else f"{epochs:.0f}" for epochs in sorted(needed))
        return f"{text} (in the end {100 * statistics.median(1 - run[-1].error for run in runs):.1f} %) at {setting.rate:g}"

    rows = [["1", 32, shown(best_alone), *["" for _ in methods[1:]]]]
    for count in workers:
        rows.append([count, 32 * count, *(shown(best[s]) for s in many if s.workers == count)])
    print(f"Epochs until {100 * target:g} % are right, of {len(seeds)} seeds (–: never)\n\n"
          + reporting.table(["workers", "images in a step", *(reporting.labels[m] for m in methods)], rows))

    def draw(figure, row, theme):
        for axes, count in zip(row, (8, 64)):
            for method in methods:
                setting, = (s for s in many if (s.method, s.workers) == (method, count))
                runs = [known[run] for run in with_seeds(best[setting])]
                at = [evaluation.examples / 8192 for evaluation in runs[0]]
                reporting.draw_spread(axes, at, [[100 * run[place].error for run in runs] for place in range(len(at))],
                                      **(reporting.line_style(method, theme) | dict(marker="")))
            axes.axhline(100 * (1 - target), color=theme.muted, linestyle="--", linewidth=1)
            reporting.errors_axis(axes, 1)
            axes.set_xticks(range(0, most_epochs + 1, 5))
            axes.set_title(f"{count} workers, {32 * count} images in a step")
            axes.set_xlabel("epochs")
        row[0].set_ylabel("errors on held-out images, %")
        row[0].legend()

    def draw_rates(figure, row, theme):
        for axes, count in zip(row, (16, 64)):
            of_count = [setting for setting in many if setting.workers == count]
            reporting.draw_rates(axes, known, of_count, lambda run: min(epochs_needed(run), most_epochs + 2.0), theme)
            axes.axhspan(most_epochs + 0.5, most_epochs + 3, color=theme.faint)
            axes.set_yticks([5, 10, 15, 20, most_epochs + 2], ["5", "10", "15", "20", "never"])
            axes.set_title(f"{count} workers, {32 * count} images in a step")
        row[0].set_ylabel(f"epochs until {100 * target:g} % are right")
        row[0].legend(loc="lower left")

    reporting.picture_style.save(chosen.out / "residual", draw, (10, 4), ncols=2, sharey=True)
    reporting.picture_style.save(chosen.out / "residual_rates", draw_rates, (10, 4), ncols=2, sharey=True)


def quick(chosen):
    problem = functools.partial(problems.Images, models.ResidualNetwork, training=1024, held_out=256)
    runner = Runner(Task(problem, Results(chosen.out / "residual.csv"), evaluations=2), chosen)
    settings = [Setting(count, 8, "momentum", method, 0.02, 2, 1) for count, method in
                [(1, "mean"), (8, "mean"), (8, "adasum")]]
    known = runner.run(settings, "residual, quick")
    alone, mean, adasum = (1 - known[setting][-1].error for setting in settings)
    print(f"accuracy: one worker {alone:.3f}, 8 workers: mean {mean:.3f}, Adasum {adasum:.3f}")
    return 0 if adasum > mean and all(known[s][-1].loss < known[s][0].loss for s in settings) else 1
