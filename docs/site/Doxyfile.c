# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What differs for the header of the C library.
OUTPUT_DIRECTORY = build/docs/doxygen/c
INPUT = include/adasum/adasum.h
INPUT_FILTER =
EXCLUDE_SYMBOLS =
OPTIMIZE_OUTPUT_FOR_C = YES
