#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of compile_cost.py, on made-up output of the compiler and made-up figures."""

import contextlib
import io
import unittest

import compile_cost


def compare(counted, known):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        wrong = compile_cost.compare(counted, known)
    return wrong, printed.getvalue()


class CompileCost(unittest.TestCase):
    def test_counts_functions_and_neither_data_nor_symbols_without_a_size(self):
        symbols = """0000000000000000 0000000000000024 T main
0000000000000000 0000000000000010 W _ZN6adasum5thingEv
0000000000000000 0000000000000005 t _ZL5localv
0000000000000000 0000000000000008 V _ZTIN6adasum5errorE
0000000000000018 0000000000000004 r _ZL8constant
0000000000000000 t .text.unlikely
"""
        self.assertEqual(compile_cost.sizes_of_functions(symbols), [0x24, 0x10, 0x5])

    def test_reads_what_the_compiler_allocates(self):
        report = """Time variable                                   usr           sys          wall           GGC
 phase parsing                      :   1.52 ( 32%)   0.85 ( 57%)   2.37 ( 38%)   173M ( 42%)
 TOTAL                              :   4.72          1.50          6.23          414M
"""
        self.assertEqual(compile_cost.bytes_allocated(report), 414_000_000)
        self.assertEqual(compile_cost.bytes_allocated(report.replace("414M", "414k")), 414_000)

    def test_allows_what_the_file_says_and_5_percent_more(self):
        known = {"a": {"functions": 100, "bytes": 0}}
        self.assertEqual(compare({"a": {"functions": 105, "bytes": 0}}, known)[0], [])
        self.assertEqual(compare({"a": {"functions": 106, "bytes": 0}}, known)[0], ["a: 106 functions, 100 in the file"])
        self.assertEqual(compare({"a": {"functions": 100, "bytes": 1}}, known)[0], ["a: 1 bytes, 0 in the file"])

    def test_marks_what_is_less(self):
        wrong, printed = compare({"a": {"functions": 94}}, {"a": {"functions": 100}})
        self.assertEqual(wrong, [])
        self.assertIn("less", printed)

    def test_the_cases_are_those_of_the_file(self):
        self.assertEqual(compare({"new": {"lines": 1}}, {"gone": {"lines": 1}})[0],
                         ["gone: only in the file", "new: 1 lines, not in the file"])

    def test_finds_the_program_of_the_readme(self):
        source, _ = compile_cost.programs()["README"]
        self.assertTrue(source.startswith("#include <adasum/mpi.hpp>") and source.endswith("}\n"))
        self.assertIn("rules::mean", compile_cost.programs()["README, mean"][0])


if __name__ == "__main__":
    unittest.main()
