// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <adasum/schedule/automatic.hpp>

namespace scale {

/// How the programs and tables call what `automatic` may choose: recursive_halving{4,16} has radix 4 and at most 16 parts.
inline std::string name_of(const adasum::schedules::automatic::choice& one) {
  using kind = adasum::schedules::automatic::kind;
  const bool has_all_parts = one.most_parts == adasum::detail::any_number_of_parts;
  const auto parameters = (one.radix == 2 && has_all_parts ? std::string() : std::to_string(one.radix)) +
                          (has_all_parts ? std::string() : "," + std::to_string(one.most_parts));
  const auto braced = parameters.empty() ? parameters : "{" + parameters + "}";
  switch (one.which) {
    case kind::all_to_all: return "all_to_all";
    case kind::shared_memory: return "shared_memory";
    case kind::halving: return "recursive_halving" + braced;
    case kind::doubling: break;
  }
  return "recursive_doubling" + braced;
}

}  // namespace scale
