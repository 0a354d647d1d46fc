#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""schedules.py FOLDER: how ranks exchange their data under each schedule, drawn from data/stages.json."""

import dataclasses
import json
import pathlib
import sys

import diagram
from diagram import LARGE, NORMAL, SMALL, WIDTH

STAGES = json.loads((pathlib.Path(__file__).parent / "data" / "stages.json").read_text())["schedules"]


@dataclasses.dataclass(frozen=True)
class Moment:
    """What the ranks hold at one time, and what brought it about."""

    combined: list  # [rank][cell]: the set of gradients that are combined there; empty where there is nothing
    leftover: list  # [rank]: cells that hold something which nobody uses any more
    messages: list  # (from, to, first cell, last cell) since the moment before
    sums: list  # groups of ranks that have added their inner products since then


def moments(name, in_place=False):
    """A schedule's way down its stages, and back. Where ranks work in place, what they do not go on with stays where it is."""
    cells, ranks = STAGES[name]["cells"], STAGES[name]["ranks"]
    combined = [[{rank_of_gradient(name, rank)}] * cells for rank in range(len(ranks))]
    leftover = [set() for _ in ranks]
    found = [Moment(copy(combined), copy(leftover), [], [])]
    for depth in range(len(ranks[0])):
        stages = [stages[depth] for stages in ranks]
        for rank, stage in enumerate(stages):
            part, members = range(*stage["part"]), stage["members"]
            for cell in part:  # it has all that it combines
                brought = set().union(*(found[-1].combined[member][cell] for member in members))
                assert brought == set(range(*stage["leaves"])), (name, rank, depth)
                combined[rank][cell] = brought
            for cell in set(range(cells)) - set(part):
                if in_place:
                    leftover[rank].add(cell)
                else:
                    combined[rank][cell] = set()
        sums = {tuple(stage["sum_over"]) for stage in stages if len(stage["sum_over"]) > 1}
        found.append(Moment(copy(combined), copy(leftover), messages(stages, "brings"), sorted(sums)))
    for depth in reversed(range(len(ranks[0]))):
        sent = messages([stages[depth] for stages in ranks], "delivers")
        for sender, receiver, first, last in sent:
            for cell in range(first, last):
                combined[receiver][cell] = combined[sender][cell]
                leftover[receiver].discard(cell)
        if sent:
            found.append(Moment(copy(combined), copy(leftover), sent, []))
    gradients = set().union(*found[0].combined[0], *(row[0] for row in found[0].combined))
    assert all(cell == gradients for row in combined for cell in row), name
    return found


def rank_of_gradient(name, rank):
    """Which gradient a rank has a part of."""
    return rank // 2 if name == "shards" else rank


def copy(rows):
    return [type(row)(row) for row in rows]


def messages(stages, kind):
    return [(rank, to, *cells) for rank, stage in enumerate(stages) for to, cells in stage[kind]]


def side_by_side(all_of_them, one, room):
    return (all_of_them.index(one) - (len(all_of_them) - 1) / 2) * min(6, room / len(all_of_them))


@dataclasses.dataclass(frozen=True)
class Look:
    """How a schedule is drawn: titles and texts of its moments; names of ranks, and of groups of them."""

    rows: list
    ranks: list
    groups: list = ()  # (name, number of ranks)
    in_place: bool = False
    bar: float = 76
    gap: float = 17  # between the bars of two ranks
    group_gap: float = 0
    between: float = 44  # between moments


LEFT, BAR_HEIGHT = 142, 20


class Picture:
    def __init__(self, name, look):
        self.look, self.name, self.moments = look, name, moments(name, look.in_place)
        assert len(look.rows) == len(self.moments), (name, len(self.moments))
        self.top = 58 if look.groups else 34
        self.last = self.top + (len(self.moments) - 1) * (BAR_HEIGHT + look.between) + BAR_HEIGHT
        self.height = self.last + 50

    def x(self, rank):
        at, group_end = LEFT + rank * (self.look.bar + self.look.gap), 0
        for _, size in self.look.groups:
            group_end += size
            at += self.look.group_gap * (rank >= group_end)
        return at

    def y(self, row):
        return self.top + row * (BAR_HEIGHT + self.look.between)

    def draw(self, canvas):
        self.draw_ranks(canvas)
        for row, moment in enumerate(self.moments):
            y = self.y(row)
            title, *texts = self.look.rows[row]
            canvas.text(8, y + 2, title, NORMAL, weight="bold", align="left")
            canvas.lines(8, y + 16, texts, align="left", colour=canvas.theme.muted)
            for group in moment.sums:
                left, right = self.x(group[0]) - 4.5, self.x(group[-1]) + self.look.bar + 4.5
                canvas.box(left, y - 5, right - left, BAR_HEIGHT + 10, edge=canvas.theme.ink, line=1)
            for rank, combined in enumerate(moment.combined):
                canvas.cells(self.x(rank), y, self.look.bar, BAR_HEIGHT, combined, moment.leftover[rank])
            self.draw_messages(canvas, row, moment.messages)
        self.draw_key(canvas)

    def draw_ranks(self, canvas):
        first = 0
        for name, size in self.look.groups:
            left, right = self.x(first) - 10, self.x(first + size - 1) + self.look.bar + 10
            canvas.box(left, 4, right - left, self.last + 8, edge=canvas.theme.faint,
                       fill=canvas.theme.shade(canvas.theme.extra, 0.1))
            canvas.text((left + right) / 2, 17, name, LARGE, weight="bold")
            first += size
        for rank, name in enumerate(self.look.ranks):
            canvas.text(self.x(rank) + self.look.bar / 2, self.top - 16, name, NORMAL if len(name) < 8 else SMALL)

    def draw_messages(self, canvas, row, messages):
        each = self.look.bar / STAGES[self.name]["cells"]
        top, bottom = self.y(row - 1) + BAR_HEIGHT + 3, self.y(row) - 3
        for sender, receiver, first, last in messages:
            middle, room = (first + last) / 2 * each, (last - first) * each
            # Where several leave the same cells, or arrive there, side by side and in the order of the ranks.
            beside_start = sorted(to for by, to, *cells in messages if by == sender and cells == [first, last])
            beside_end = sorted(by for by, to, *cells in messages if to == receiver and cells == [first, last])
            start = self.x(sender) + middle + side_by_side(beside_start, receiver, room)
            canvas.arrow((start, top), (self.x(receiver) + middle + side_by_side(beside_end, sender, room), bottom), line=1.1,
                         head=8)

    def draw_key(self, canvas):
        y = self.height - 26
        gradients = sorted(set().union(*self.moments[-1].combined[0]))
        x = LEFT
        canvas.cells(x, y, 20, BAR_HEIGHT, [gradients])
        canvas.text(x + 26, y + 10, "these gradients, combined", SMALL, align="left")
        if any(moment.sums for moment in self.moments):
            x += 165
            canvas.box(x, y, 24, BAR_HEIGHT, edge=canvas.theme.ink, line=1)
            canvas.text(x + 30, y + 10, "these ranks add their inner products", SMALL, align="left")


RANKS_4, RANKS_6 = [f"rank {r}" for r in range(4)], [f"rank {r}" for r in range(6)]
START = ("start", "a gradient on each rank")
LOOKS = {
    "recursive_halving": Look([
        START,
        ("stage 1", "pairs exchange halves;", "each combines one"),
        ("stage 2", "pairs exchange quarters;", "each combines one"),
        ("way back", "quarters are exchanged"),
        ("result", "halves are exchanged"),
    ], RANKS_4),
    "recursive_doubling": Look([
        START,
        ("stage 1", "pairs exchange gradients;", "both combine them"),
        ("stage 2", "pairs exchange these;", "every rank has the result"),
    ], RANKS_4),
    "all_to_all": Look([
        START,
        ("the only stage", "each rank gets a slice", "of all, and combines it"),
        ("result", "each sends its slice to all"),
    ], RANKS_4, between=62),
    "halving_of_6": Look([
        START,
        ("level of 2", "pairs exchange halves"),
        ("level of 3", "ranks with the same half", "exchange its thirds"),
        ("way back", "thirds are exchanged"),
        ("result", "halves are exchanged"),
    ], RANKS_6, bar=54, gap=11, between=50),
    "shared_memory_by_levels": Look([
        ("start", "all ranks can read", "all gradients"),
        ("level 1", "reads the other's half,", "writes into its own"),
        ("level 2", "the same with quarters"),
        ("way back", "writes its quarter into", "the other's gradient"),
        ("result", "the same with halves"),
    ], RANKS_4, [("memory that the ranks share", 4)], in_place=True),
    "nodes": Look([
        START,
        ("inside each node", "each rank combines", "a third"),
        ("across the nodes", "ranks with the same third", "exchange its halves"),
        ("way back", "first across the nodes"),
        ("result", "then inside each node"),
    ], RANKS_6, [("node 0", 3), ("node 1", 3)], bar=52, gap=9, group_gap=18, between=50),
    "shards": Look([
        ("start", "each rank has a shard of", "its replica's gradient"),
        ("the only stage", "ranks with the same shard", "exchange its halves"),
        ("result", "each rank has its shard", "of the combination"),
    ], [f"rank {r}, shard {r % 2}" for r in range(4)], [("replica 0", 2), ("replica 1", 2)], bar=72, gap=17, group_gap=22),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, look in LOOKS.items():
        picture = Picture(name, look)
        diagram.save(folder / name, picture.draw, WIDTH, picture.height)


if __name__ == "__main__":
    main()
