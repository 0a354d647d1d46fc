// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/optional_members.hpp"
#include "../detail/references/communicator_ref.hpp"
#include "../detail/references/rule_ref.hpp"
#include "../detail/references/schedule_ref.hpp"
#include "../detail/references/space_ref.hpp"
#include "../detail/references/sums_table.hpp"
#include "near_misses.hpp"

/// Which optional members of a type the library takes. The tables say it that the engine calls them by.
namespace adasum::detail {

using member_list = std::vector<std::string>;

inline member_list taken(std::initializer_list<std::pair<const char*, bool>> members) {
  member_list names;
  for (const auto& [name, is_taken] : members)
    if (is_taken) names.emplace_back(name);
  return names;
}

template <class Rule>
member_list taken_members_of_rule() {
  refuse_members_of_rule<Rule>();
  refuse_near_misses_of_rule<Rule>();
  const auto& table = table_of_rule<Rule>;
  return taken({{"needs", needs_of<Rule> != inner_products::usual},
                {"rule(gram, weights, k)", !pairwise_rule<Rule> && takes_number_of_segment<Rule>},
                {"whole_model", table.whole_model != nullptr},
                {"leaves_out_nonfinite", table.leaves_out_nonfinite},
                {"degree", has_degree<Rule>},
                {"parameters", has_parameters<Rule>},
                {"fallbacks", counts_fallbacks<Rule>}});
}

template <scalar T, class Space>
member_list taken_members_of_space() {
  refuse_members_of_space<T, Space>();
  refuse_near_misses_of_space<T, Space>();
  const auto& table = table_of_space<T, Space>;
  return taken({{"16-bit copies", table.packing != nullptr},
                {"arithmetic in double", table.mix_in_double != nullptr},
                {"sums in double", sums_if_any<T, Space>() != nullptr},
                {"for_recombining", table.copies_are_double && !std::is_same_v<T, double>},
                {"can_reach", table.can_reach != nullptr}});
}

template <class Comm, class Space>
member_list taken_members_of_communicator() {
  refuse_members_of_communicator<Comm>();
  refuse_near_misses_of_communicator<Comm>();
  const auto& table = table_of_communicator<Comm, Space>;
  auto names = taken({{"state", has_state<Comm>},
                      {"reserve", table.reserve != nullptr},
                      {"nodes", table.nodes != nullptr},
                      {"post", table.posting != nullptr},
                      {"reserve with pending", table.posting != nullptr && table.posting->reserve != nullptr},
                      {"share", table.sharing != nullptr}});
  if constexpr (shared_memory_communicator<Comm>) {
    using memory = decltype(std::declval<const Comm&>().share(std::size_t{}));
    refuse_members_of_memory<memory>();
    for (auto& name : taken({{"has_left", tells_who_has_left<memory>}, {"progress", makes_progress<memory>}}))
      names.push_back(std::move(name));
  }
  return names;
}

template <class Schedule>
member_list taken_members_of_schedule() {
  refuse_members_of_schedule<Schedule>();
  refuse_near_misses_of_schedule<Schedule>();
  const auto& table = table_of_schedule<Schedule>;
  return taken({{"uses_shared_memory", table.uses_shared_memory != nullptr},
                {"leaf_ranks", table.leaf_ranks != nullptr},
                {"parameters", has_parameters<Schedule>}});
}

}  // namespace adasum::detail
