// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// To be included in place of <doctest/doctest.h>, before anything of PyTorch's: its logging defines the same macros, which
/// end the process.
#include <c10/util/Logging.h>
#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_LT
#undef CHECK_GT
#undef CHECK_LE
#undef CHECK_GE
#include <doctest/doctest.h>
