// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace adasum::test::model {

/// Whether a rank's code is running, and not the explorer's: only then are accesses followed.
extern bool is_ranks_code;

/// What ranks' code has allocated is gone: ranks of an earlier path will not go on.
void forget_allocations();

}  // namespace adasum::test::model
