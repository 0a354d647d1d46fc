// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <adasum/schedules/choice.hpp>

/// How benchmarks call what `automatic` may choose: recursive_halving{4,16} has radix 4 and at most 16 parts. Where nodes come
/// first: "by node, levels of 8, shards, recursive_doubling".
inline std::string name_of(const adasum::detail::choice& one) {
  using kind = adasum::detail::choice::kind;
  const bool has_all_parts = one.most_parts == adasum::detail::any_number_of_parts;
  const auto parameters = (one.radix == 2 && has_all_parts ? std::string() : std::to_string(one.radix)) +
                          (has_all_parts ? std::string() : "," + std::to_string(one.most_parts));
  const auto braced = parameters.empty() ? parameters : "{" + parameters + "}";
  std::string name;
  if (one.by_node) {
    name = "by node, ";
    if (one.radix_inside != adasum::detail::one_level) name += "levels of " + std::to_string(one.radix_inside) + ", ";
    constexpr const char* carried[] = {"shards, ", "whole, ", "whole by leaders, "};
    name += carried[static_cast<int>(*one.by_node)];
  }
  switch (one.which) {
    case kind::all_to_all: return name + "all_to_all";
    case kind::shared_memory: return name + "shared_memory";
    case kind::halving: return name + "recursive_halving" + braced;
    case kind::doubling: break;
  }
  return name + "recursive_doubling" + braced;
}
