# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""word2vec, as in the authors' slides: skip-gram with negative sampling on the words of Shakespeare's plays, by SGD, with 1 to
32 workers. Most words are rare, so most workers' gradients touch different rows of the two matrices. Which loss do held-out
words have, with Adasum of whole matrices and of each word's vector, beside the mean and the sum, all with their best rates?"""

import dataclasses
import functools

import problems
import reporting
from runs import Results, Runner, Task
from training import Setting, train

methods = ["mean", "sum", "adasum", "adasum of rows"]
workers = [2, 4, 8, 16, 32]
seeds = [1, 2, 3]
shown_words = ["king", "love", "sword", "mother", "night"]


def main(chosen):
    make = functools.partial(problems.Words, chosen.data)
    runner = Runner(Task(make, Results(chosen.out / "word2vec.csv"), evaluations=8, beyond=1), chosen)
    alone = Setting(1, 256, "sgd", "mean", 0.05, 2, 0)
    best_alone = runner.tune([alone], "rates of one worker")[alone]
    many = [dataclasses.replace(best_alone, workers=count, method=method) for count in workers for method in methods]
    best = runner.tune(many, "rates of many workers")

    def with_seeds(setting):
        return [dataclasses.replace(setting, seed=seed) for seed in seeds]

    known = runner.run([run for setting in [best_alone, *many, *best.values()] for run in with_seeds(setting)], "three seeds")

    def losses(setting):
        return [known[run][-1].loss for run in with_seeds(setting)]

    rows = []
    for count in workers:
        of_count = [setting for setting in many if setting.workers == count]
        rows.append([count, *(reporting.spread(losses(setting), 3) for setting in of_count),
                     *(f"{reporting.spread(losses(best[setting]), 3)} at {best[setting].rate:g}" for setting in of_count)])
    print(f"One worker alone: {reporting.spread(losses(best_alone), 3)} at {best_alone.rate:g}\n\n" + reporting.table(
        ["workers", *(f"{reporting.labels[m]}, rate of one worker" for m in methods),
         *(f"{reporting.labels[m]}, own rate" for m in methods)], rows))

    problem = make()
    trained = {}
    for name, setting in [("one worker", best_alone)] + [
            (f"32 workers, {reporting.labels[s.method]}", best[s]) for s in many if s.workers == 32 and s.method != "sum"]:
        kept = []
        train(problem, dataclasses.replace(setting, seed=seeds[0]), 1, keep=kept.append)
        trained[name] = kept[0]
    rows = [[word, *(", ".join(problem.nearest(module, word)) for module in trained.values())] for word in shown_words]
    print(reporting.table(["word", *trained], rows))

    def draw(figure, row, theme):
        for axes, rates, title, limits in zip(row, ({}, best), ("the rate of one worker", "the best rate of each"),
                                              ((2.8, 3.8), (2.86, 2.96))):
            for method in methods:
                settings = [setting for setting in many if setting.method == method]
                reporting.draw_spread(axes, [1, *workers], [losses(best_alone), *(losses(rates.get(s, s)) for s in settings)],
                                      **reporting.line_style(method, theme))
            axes.set_title(title)
            reporting.workers_axis(axes, [1, *workers])
            axes.set_ylim(limits)
        row[0].set_ylabel("loss on held-out words")
        row[0].legend()

    reporting.picture_style.save(chosen.out / "word2vec", draw, (10, 4), ncols=2)


def quick(chosen):
    runner = Runner(Task(problems.Words, Results(chosen.out / "word2vec.csv"), evaluations=1), chosen)
    settings = [Setting(count, 64, "sgd", method, 0.1, 2, 1) for count, method in
                [(1, "mean"), (8, "mean"), (8, "adasum of rows")]]
    known = runner.run(settings, "word2vec, quick")
    alone, mean, adasum = (known[setting][-1].loss for setting in settings)
    print(f"loss: at first {known[settings[0]][0].loss:.3f}; one worker {alone:.3f}, 8 workers: mean {mean:.3f}, Adasum, "
          f"word by word {adasum:.3f}")
    return 0 if adasum < mean < known[settings[1]][0].loss else 1
