// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: for a rule that a text names, pass adasum::rules::named.text.
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/rules/named.hpp>

void use(std::vector<float>& gradient) {
#ifdef CORRECTED
  auto rule = adasum::rules::named("mean");
#else
  const auto* const rule = "mean";
#endif
  adasum::combine_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient, rule);
}
