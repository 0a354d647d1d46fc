// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <adasum/core/node_groups.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/automatic.hpp>
#include <adasum/schedules/by_node.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/shared_memory.hpp>
#include <adasum/testing/simulated_communicator.hpp>

#include "case.hpp"
#include "support/forwarded_schedule.hpp"
#include "tested_communicator.hpp"

/// Rules and a space in which other ranks get their turn, and one may fail; and one type for all schedules, so that all
/// of these are compiled once.
namespace adasum::test {

struct interrupted_space : serial_space {
  static constexpr std::string_view name = "interrupted";
  simulated_communicator comm;
  explicit interrupted_space(const simulated_communicator& c) : comm(c) {}
  friend bool operator==(const interrupted_space&, const interrupted_space&) { return true; }

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    comm.point();
    serial_space::measure<T>(window, vectors, gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    comm.point();
    serial_space::mix<T>(window, vectors, weights, out);
    if (planted == plant::write_beside && planted_behind_gradient != nullptr)
      *static_cast<T*>(planted_behind_gradient) = from_double<T>(1);
    comm.point();
  }
};

struct interrupted_adasum {
  static constexpr std::string_view name = "interrupted_adasum";
  simulated_communicator comm;
  pair_weights operator()(const pair_gram& gram) const {
    comm.point();
    auto weights = rules::adasum{}(gram);
    if (planted == plant::wrong_weight && comm.rank() == comm.size() - 1) weights.a *= 1.01;
    return weights;
  }
};

/// Of all gradients at once; a zero vector has weight 0.
struct interrupted_mean_of_units {
  static constexpr std::string_view name = "interrupted_mean_of_units";
  simulated_communicator comm;
  int degree() const { return 0; }
  void operator()(gram_view gram, std::span<double> weights) const {
    comm.point();
    for (std::size_t i = 0; i < gram.size(); ++i)
      weights[i] = gram(i, i) > 0 ? 1 / (static_cast<double>(gram.size()) * std::sqrt(gram(i, i))) : 0;
  }
};

/// Inside each node by levels of two or three ranks, in memory if the gradient is in the plan's buffer, and across by halving.
struct levels_of_nodes {
  static constexpr std::string_view name = "levels_of_nodes";
  static constexpr bool supports_gram_rules = false;

  static std::vector<stage> stages(int rank, int size, const schedule_input& input) {
    return schedules::stages_by_node(leaves(size, input), rank, input, {.radix = 2},
                                     [](int node, int nodes, const schedule_input& among_nodes) {
                                       return schedules::recursive_halving{}.stages(node, nodes, among_nodes);
                                     });
  }
  static shared_memory_use uses_shared_memory(int, const schedule_input&) { return shared_memory_use::buffer; }
  static std::vector<int> leaf_ranks(int size, const schedule_input& input) { return leaves(size, input).ranks(); }

 private:
  static node_leaves leaves(int size, const schedule_input& input) {
    const std::vector<int> one_node(static_cast<std::size_t>(size));
    return node_leaves(node_groups(input.nodes.empty() ? std::span<const int>(one_node) : input.nodes));
  }
};

/// One of the library's schedules.
struct chosen_order : forwarded_schedule<chosen_order> {
  static constexpr std::string_view name = "chosen_order";
  simulated_order which;
  chosen_order(simulated_order one = {}) : which(one) {}

  template <class Visitor>
  auto visit(Visitor&& visitor) const {
    using namespace schedules;
    switch (which) {
      case simulated_order::halving: return visitor(recursive_halving{});
      case simulated_order::halving_by_4: return visitor(recursive_halving{.radix = 4});
      case simulated_order::halving_by_8: return visitor(recursive_halving{.radix = 8});
      case simulated_order::levels_of_nodes: return visitor(test::levels_of_nodes{});
      case simulated_order::all_to_all: return visitor(all_to_all{});
      case simulated_order::automatic: return visitor(automatic{});
      case simulated_order::by_messages: return visitor(automatic{.in_place = false});
      case simulated_order::shared: return visitor(shared_memory{});
      case simulated_order::doubling:
      case simulated_order::count: break;
    }
    return visitor(recursive_doubling{});
  }

  std::array<double, 1> parameters() const { return {static_cast<double>(which)}; }

  friend bool operator==(const chosen_order&, const chosen_order&) = default;
};
static_assert(schedule<chosen_order>);

}  // namespace adasum::test
