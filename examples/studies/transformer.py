# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A language model of characters: a transformer of three layers on Shakespeare's plays, once through 1 MB of text, by Adam and
by LAMB, with 1, 16, 32 and 64 workers of 4 sequences each. The loss on held-out text over steps and examples, for the mean,
Adasum of gradients, Adasum of the optimizers' steps (the paper's way) and AdaCons, with the rate that is best for one worker
(the run by which rates were chosen), and with the best one of each (another seed)."""

import dataclasses
import functools

import problems
import reporting
from runs import Results, Runner, Task, last_error
from training import Setting

methods = ["mean", "adasum", "adasum of steps", "adacons"]
workers = [16, 32, 64]
rates_to_begin_with = {"adam": 2e-3, "lamb": 1e-2}
# Not at one worker's rate: that of Adam lies near a second minimum, of rates at which many workers learn badly.
rates_of_many_to_begin_with = {"adam": 4e-3, "lamb": 2e-2}
optimizers = {"adam": "Adam", "lamb": "LAMB"}
seeds = [1]


def main(chosen):
    runner = Runner(Task(functools.partial(problems.Characters, chosen.data), Results(chosen.out / "transformer.csv"),
                         evaluations=20, beyond=1), chosen)
    alone = {optimizer: Setting(1, 4, optimizer, "mean", rate, 1, 0) for optimizer, rate in rates_to_begin_with.items()}
    best_alone = runner.tune(alone.values(), "rates of one worker")
    many = [dataclasses.replace(best_alone[alone[optimizer]], workers=count, method=method)
            for optimizer in optimizers for count in workers for method in methods]
    begin = {setting: dataclasses.replace(setting, rate=rates_of_many_to_begin_with[setting.optimizer]) for setting in many}
    found = runner.tune(begin.values(), "rates of many workers")
    best = {setting: found[begin[setting]] for setting in many}

    def with_seeds(setting):
        return [dataclasses.replace(setting, seed=seed) for seed in seeds]

    known = runner.run(many + [run for setting in [*best_alone.values(), *best.values()] for run in with_seeds(setting)],
                       "seeds")

    def losses(setting):
        return [known[run][-1].loss for run in with_seeds(setting)]

    for optimizer, name in optimizers.items():
        one = best_alone[alone[optimizer]]
        rows = []
        for count in workers:
            of_count = [setting for setting in many if (setting.workers, setting.optimizer) == (count, optimizer)]
            rows.append([count, known[of_count[0]][-1].rounds,
                         *(reporting.number(known[setting][-1].loss, 3) for setting in of_count),
                         *(f"{reporting.spread(losses(best[setting]), 3)} at {best[setting].rate:g}" for setting in of_count)])
        steps = known[with_seeds(one)[0]][-1].rounds
        print(f"{name}; one worker alone: {reporting.spread(losses(one), 3)} after {steps} steps at {one.rate:g}\n")
        print(reporting.table(["workers", "steps", *(f"{reporting.labels[m]}, rate of one worker" for m in methods),
                               *(f"{reporting.labels[m]}, own rate" for m in methods)], rows))

    def draw_losses(figure, grid, theme):
        for row, (optimizer, name) in zip(grid, optimizers.items()):
            one = losses(best_alone[alone[optimizer]])
            for axes, own_rate in zip(row, (False, True)):
                for method in methods:
                    settings = [s for s in many if (s.method, s.optimizer) == (method, optimizer)]
                    values = [losses(best[s]) if own_rate else [known[s][-1].loss] for s in settings]
                    reporting.draw_spread(axes, [1, *workers], [one, *values], **reporting.line_style(method, theme))
                axes.set_title(f"{name}, {'the best rate of each' if own_rate else 'the rate of one worker'}")
                reporting.workers_axis(axes, [1, *workers])
            row[0].set_ylabel("loss on held-out text")
        grid[0][0].legend()

    def draw_curves(figure, grid, theme):
        for row, (optimizer, name) in zip(grid, optimizers.items()):
            for axes, count in zip(row, workers):
                for method in methods:
                    setting, = (s for s in many if (s.method, s.optimizer, s.workers) == (method, optimizer, count))
                    run = known[with_seeds(best[setting])[0]]
                    style = reporting.line_style(method, theme) | dict(marker="")
                    axes.plot([e.round for e in run], [e.loss for e in run], **style)
                axes.axhline(known[with_seeds(best_alone[alone[optimizer]])[0]][-1].loss, color=theme.muted, linestyle="--",
                             linewidth=1)
                axes.set_title(f"{name}, {count} workers")
                axes.set_xlabel("steps")
            row[0].set_ylabel("loss on held-out text")
        grid[0][0].legend()

    def draw_rates(figure, grid, theme):
        for row, (optimizer, name) in zip(grid, optimizers.items()):
            for axes, count in zip(row, workers):
                of_count = [setting for setting in many if (setting.workers, setting.optimizer) == (count, optimizer)]
                reporting.draw_rates(axes, known, of_count, last_error, theme)
                axes.set_title(f"{name}, {count} workers")
                axes.set_ylim(2.1, 3.6)
            row[0].set_ylabel("loss on held-out text")
        grid[0][0].legend()

    reporting.picture_style.save(chosen.out / "transformer_rates", draw_rates, (11, 7), nrows=2, ncols=3, sharey=True)
    reporting.picture_style.save(chosen.out / "transformer", draw_losses, (10, 7), nrows=2, ncols=2, sharey=True)
    reporting.picture_style.save(chosen.out / "transformer_steps", draw_curves, (11, 7), nrows=2, ncols=3, sharey=True)


def quick(chosen):
    runner = Runner(Task(functools.partial(problems.Characters, length=32, layers=1), Results(chosen.out / "transformer.csv"),
                         evaluations=1), chosen)
    settings = [Setting(count, 4, optimizer, method, rate, 1, 1) for count, optimizer, method, rate in
                [(1, "adam", "mean", 5e-3), (8, "adam", "adasum of steps", 5e-3), (8, "lamb", "adasum of steps", 2e-2),
                 (8, "adam", "mean", 5e-3)]]
    known = runner.run(settings, "transformer, quick")
    for setting in settings:
        first, last = known[setting][0].loss, known[setting][-1].loss
        print(f"{setting.workers} workers, {setting.optimizer}, {setting.method}: loss {first:.3f} -> {last:.3f}")
        if not last < 0.9 * first:
            return 1
    return 0
