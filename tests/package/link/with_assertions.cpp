// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "all_reductions.hpp"

reductions with_assertions() { return all_reductions(); }
