// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "erased_rule.hpp"
#include "every_call.hpp"

namespace adasum::test {

template trial_result try_every_call(const any_communicator&, const setting&, const combination&, const erased_tree_rule&);

}  // namespace adasum::test
