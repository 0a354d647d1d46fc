# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local steps (DiLoCo: Douillard et al., arXiv 2311.08105): eight workers train the transformer of the other study for k steps
of Adam each. Then what they have changed is combined: by the mean, by the mean and an outer optimizer (SGD with Nesterov's
momentum, rate 0.7, momentum 0.9, as in the paper), by Adasum, and by Adasum and that optimizer. The loss on held-out text over
rounds of communication, with the best inner rate of each."""

import dataclasses
import functools

import problems
import reporting
from runs import Results, Runner, Task
from training import Setting

local_steps = [1, 8, 32]
outer = dict(outer_rate=0.7, outer_momentum=0.9)
ways = {"mean": ("mean of steps", {}), "mean, outer optimizer (DiLoCo)": ("mean of steps", outer),
        "Adasum": ("adasum of steps", {}), "Adasum, outer optimizer": ("adasum of steps", outer)}
seeds = [1]


def main(chosen):
    runner = Runner(Task(functools.partial(problems.Characters, chosen.data), Results(chosen.out / "local_steps.csv"),
                         evaluations=16, beyond=1), chosen)
    alone = Setting(1, 4, "adam", "mean", 8e-3, 1, 0)
    best_alone = runner.tune([alone], "rates of one worker")[alone]
    # An outer optimizer lengthens steps, so its search begins lower.
    settings = {(way, k): dataclasses.replace(best_alone, workers=8, method=method, rate=1e-3 if more else 4e-3,
                                              local_steps=k, **more)
                for way, (method, more) in ways.items() for k in local_steps}
    best = runner.tune(settings.values(), "rates of eight workers")

    def with_seeds(setting):
        return [dataclasses.replace(setting, seed=seed) for seed in seeds]

    known = runner.run([run for setting in [best_alone, *best.values()] for run in with_seeds(setting)], "seeds")

    def losses(setting):
        return [known[run][-1].loss for run in with_seeds(setting)]

    rows = []
    for k in local_steps:
        of_k = [best[settings[way, k]] for way in ways]
        rows.append([k, known[with_seeds(of_k[0])[0]][-1].rounds,
                     *(f"{reporting.spread(losses(setting), 3)} at {setting.rate:g}" for setting in of_k)])
    print(f"One worker alone: {reporting.spread(losses(best_alone), 3)} at {best_alone.rate:g}\n\n"
          + reporting.table(["local steps", "rounds", *ways], rows))

    def style(way, theme):
        method, more = ways[way]
        return reporting.line_style({"mean of steps": "mean", "adasum of steps": "adasum"}[method], theme) | dict(
            label=way, linestyle="--" if more else "-", marker="D" if more else "o")

    def draw(figure, row, theme):
        rounds = [known[with_seeds(best[settings["mean", k]])[0]][-1].rounds for k in local_steps]  # the same for all ways
        for way in ways:
            reporting.draw_spread(row[0], rounds, [losses(best[settings[way, k]]) for k in local_steps], **style(way, theme))
            run = known[with_seeds(best[settings[way, 32]])[0]]
            row[1].plot([e.round for e in run], [e.loss for e in run], **style(way, theme))
        row[0].set_xscale("log")
        row[0].set_xticks(rounds, [str(count) for count in rounds])
        row[0].minorticks_off()
        row[0].set_xlabel("rounds of communication in all")
        row[0].set_ylabel("loss on held-out text")
        row[0].set_title("at the end, 1 to 32 local steps")
        row[1].set_xlabel("rounds")
        row[1].set_title("on the way, 32 local steps")
        row[0].legend()

    reporting.picture_style.save(chosen.out / "local_steps", draw, (10, 4.2), ncols=2, sharey=True)


def quick(chosen):
    runner = Runner(Task(functools.partial(problems.Characters, length=32, layers=1), Results(chosen.out / "local_steps.csv"),
                         evaluations=1), chosen)
    settings = {way: Setting(4, 4, "adam", method, 5e-3, 1, 1, local_steps=8, **more) for way, (method, more) in ways.items()}
    known = runner.run(settings.values(), "local steps, quick")
    for way, setting in settings.items():
        first, last = known[setting][0], known[setting][-1]
        print(f"{way}: loss {first.loss:.3f} -> {last.loss:.3f} in {last.rounds} rounds")
    return 0 if all(known[s][-1].loss < 0.9 * known[s][0].loss for s in settings.values()) else 1
