// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: no member named .exclude
#include <adasum/core/report_writer.hpp>

/// A report is written by the library; who reads it cannot change it.
#ifdef CORRECTED
using found_so_far = adasum::detail::report_writer;
#else
using found_so_far = adasum::report;
#endif

void use(found_so_far& found) { found.exclude(0); }
