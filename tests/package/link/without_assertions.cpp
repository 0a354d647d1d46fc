// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "all_reductions.hpp"

reductions without_assertions() { return all_reductions(); }
