#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of compare.py, on made-up results."""

import contextlib
import io
import unittest

import compare


def figure(median, spread):
    return {"q1": median - spread / 2, "median": median, "q3": median + spread / 2, "repetitions": 11}


def results(**headings):
    return {"date": "today", "commit": "0", "machine": {"cpu": "x", "cores": 2}, "compiler": "g++", "mpi": ["y"], **headings}


def pair(elements, **seconds):
    return {"scalar": "float", "elements": elements, "fraction_of_ceiling": 0.5, "seconds": seconds}


class Compare(unittest.TestCase):
    def test_finds_every_figure_and_its_row(self):
        run = results(
            pair=[pair(1024, adasum_pair=figure(2.0, 0.1), ceiling=figure(1.0, 0.1))],
            allreduce=[{"mpi": "y", "ranks": 2, "elements": 256, "name": "all_to_all", "schedule": "all_to_all", "batch": 32,
                        "seconds": figure(1.0, 0.1), "ratio": figure(1.5, 0.1)}],
        )
        self.assertEqual(list(compare.figures(run)), [
            ("pair", "float 1024", "seconds adasum_pair"),
            ("pair", "float 1024", "seconds ceiling"),
            ("allreduce", "y 2 256 all_to_all", "seconds"),
            ("allreduce", "y 2 256 all_to_all", "ratio"),
        ])

    def test_marks_what_exceeds_both_spreads(self):
        self.assertTrue(compare.exceeds_spreads(figure(1.0, 0.1), figure(1.2, 0.1)))
        self.assertTrue(compare.exceeds_spreads(figure(1.2, 0.1), figure(1.0, 0.1)))
        self.assertFalse(compare.exceeds_spreads(figure(1.0, 0.3), figure(1.2, 0.1)))
        self.assertFalse(compare.exceeds_spreads(figure(1.0, 0.1), figure(1.2, 0.3)))
        self.assertFalse(compare.exceeds_spreads(figure(1.0, 0.0), figure(1.0, 0.0)))

    def test_compares_only_what_both_runs_have(self):
        old = results(pair=[pair(1024, adasum_pair=figure(2.0, 0.1), gone=figure(1.0, 0.1)),
                            pair(4096, adasum_pair=figure(8.0, 0.1))])
        new = results(pair=[pair(1024, adasum_pair=figure(1.5, 0.1), added=figure(1.0, 0.1))], tree=[])
        self.assertEqual(list(compare.changes(old, new)), [
            {"heading": "pair", "row": "float 1024", "figure": "seconds adasum_pair", "old": 2.0, "new": 1.5,
             "change": -0.25, "marked": True},
        ])

    def test_the_change_of_a_negative_figure_has_the_sign_of_its_difference(self):
        row = {"mpi": "y", "ranks": 2, "elements": 256, "buckets": 16, "schedule": "shared_memory", "computation": "elsewhere"}
        old, new = (results(overlap=[{**row, "hidden": figure(value, 0.01)}]) for value in (-0.2, -0.1))
        [change] = compare.changes(old, new)
        self.assertAlmostEqual(change["change"], 0.5)

    def test_a_figure_that_was_zero_has_no_relative_change(self):
        old, new = (results(tree=[{"vectors": 8, "segments": 1, "seconds": {"adasum_tree": figure(value, 0.0)}}]) for value in (0.0, 1.0))
        [change] = compare.changes(old, new)
        self.assertIsNone(change["change"])
        self.assertTrue(change["marked"])

    def test_says_what_else_differs_between_the_runs(self):
        old, new = results(), results()
        self.assertEqual(compare.different_conditions(old, new), [])
        new["compiler"] = "clang++"
        self.assertEqual(compare.different_conditions(old, new), ["compiler: g++ before, clang++ now"])

    def test_prints_figures_and_marks(self):
        old, new = (results(pair=[pair(1024, adasum_pair=figure(value, 0.1), ceiling=figure(1.0, 0.1))])
                    for value in (2.0, 3.0))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            compare.print_comparison(old, new)
        lines = printed.getvalue().splitlines()
        self.assertEqual([line.split() for line in lines if line.startswith("  ")], [
            ["float", "1024", "seconds", "adasum_pair", "2", "3", "+50.0%", "*"],
            ["float", "1024", "seconds", "ceiling", "1", "1", "+0.0%"],
        ])
        self.assertEqual(lines[-1], "1 of 2 figures changed by more than their spread: 0 are lower, 1 higher")


if __name__ == "__main__":
    unittest.main()
