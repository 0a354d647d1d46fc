// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions by tables that lack one of the entries that may be null, each in turn, and all of them: the result is right, and
// what the member would have given is left out.
#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/detail/engine/run_once.hpp>

#include "support/hierarchical_formula.hpp"
#include "support/nodes.hpp"
#include "support/random_gradients.hpp"
#include "support/refusal.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_detail_references_absent_members {

using namespace adasum;
using namespace adasum::test;

namespace {

/// A table without some of its entries. They live to the end: plans that are kept are told apart by them.
template <class Table>
struct without {
  std::string_view what;
  std::function<void(Table&)> remove;
};

/// visit(table): without each of these in turn, and without all.
template <class Table, class Visitor>
void for_each_absence(const Table& complete, std::vector<without<Table>> entries, const Visitor& visit) {
  entries.push_back({"all of them", [all = entries](Table& table) {
                       for (const auto& one : all) one.remove(table);
                     }});
  for (const auto& one : entries) {
    static std::list<Table> made;
    one.remove(made.emplace_back(complete));
    CAPTURE(one.what);
    visit(made.back());
  }
}

const serial_space exec;
const segments cut{7, 0, 90, 33};

/// Gradients of few ranks: any, and some that cancel.
template <class Visitor>
void for_each_gradients(const Visitor& visit) {
  for (const int size : {2, 3, 5, 6})
    for (const auto kind : {gradient_kind::independent, gradient_kind::opposed}) {
      CAPTURE(size);
      CAPTURE(std::string(to_string(kind)));
      visit(random_gradients<float>(static_cast<std::size_t>(size), cut.total(), static_cast<std::size_t>(size), kind));
    }
}

void check(const std::vector<reduced<float>>& ranks, const std::vector<std::vector<float>>& gradients) {
  check_same_on_all_ranks(ranks);
  check_reduced(ranks.front(), expectation::of<float>(rules::adasum{}, gradients, cut), cut);
}

std::vector<reduced<float>> with_findings(std::vector<std::vector<float>> gradients, const std::vector<report>& found) {
  std::vector<reduced<float>> ranks;
  for (std::size_t r = 0; r < found.size(); ++r) ranks.push_back({std::move(gradients[r]), found[r]});
  return ranks;
}

/// On threads, by the references that make(communicator) gives.
template <class Make>
std::vector<reduced<float>> reduce(std::vector<std::vector<float>> gradients, const Make& make,
                                   const options& choices = {}) {
  auto found = results_of(on_ranks(static_cast<int>(gradients.size()), [&](const thread_communicator& comm) {
    const detail::plan_arguments given = make(comm, detail::options_of_plan(choices));
    auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
    detail::plan_ptr made;
    return detail::run_once(given, reinterpret_cast<std::byte*>(mine.data()), mine.size(), made);
  }));
  return with_findings(std::move(gradients), found);
}

template <class Comm>
detail::communicator_ref by_table(const detail::communicator_table& table, const Comm& comm) {
  return {table, &comm, detail::state_of(comm), &exec, comm.rank(), comm.size()};
}

rules::adasum rule;
const auto of_floats = [] { return detail::ref_to_space<float>(exec); };

}  // namespace

TEST_CASE("of a space") {
  using table = detail::space_table;
  const std::vector<without<table>> entries{{"measure_in_double", [](table& t) { t.measure_in_double = nullptr; }},
                                            {"mix_in_double", [](table& t) { t.mix_in_double = nullptr; }},
                                            {"can_reach", [](table& t) { t.can_reach = nullptr; }},
                                            {"rounding", [](table& t) { t.rounding = nullptr; }},
                                            {"packing", [](table& t) { t.packing = nullptr; }}};
  for_each_absence(of_floats().table(), entries, [](const table& some) {
    const auto with_order = [&](const auto& order) {
      return [&](const auto& comm, const auto& choices) -> detail::plan_arguments {
        return {"a test", {some, &exec}, detail::ref_to_communicator(exec, comm), rule, order, cut, choices};
      };
    };
    for_each_gradients([&](const auto& gradients) {
      for_each_schedule([&](const any_schedule& order, const std::string& name) {
        CAPTURE(name);
        check(reduce(gradients, with_order(order)), gradients);
      });
    });
    const auto rounded = [&] {
      std::vector<float> mine(cut.total(), 1);
      detail::plan_ptr made;
      const auto choices = detail::options_of_plan(options{.wire = wire_format::bfloat16});
      detail::run_once(with_order(schedules::recursive_halving{})(self_communicator{}, choices),
                       reinterpret_cast<std::byte*>(mine.data()), mine.size(), made);
    };
    if (some.packing == nullptr)
      check_refused(rounded, "options::wire");
    else
      rounded();
  });
}

TEST_CASE("of a communicator") {
  using table = detail::communicator_table;
  const std::vector<without<table>> entries{{"reserve", [](table& t) { t.reserve = nullptr; }},
                                            {"note_activity", [](table& t) { t.note_activity = nullptr; }},
                                            {"nodes", [](table& t) { t.nodes = nullptr; }},
                                            {"posting", [](table& t) { t.posting = nullptr; }},
                                            {"sharing", [](table& t) { t.sharing = nullptr; }}};
  for_each_absence(detail::table_of_communicator<thread_communicator, serial_space>, entries, [](const table& some) {
    for_each_gradients([&](const auto& gradients) {
      const auto check_by = [&](const auto& order) {
        const auto ranks = reduce(gradients, [&](const auto& comm, const auto& choices) -> detail::plan_arguments {
          return {"a test", of_floats(), by_table(some, comm), rule, order, cut, choices};
        });
        check(ranks, gradients);
        return std::string(ranks.front().found.schedule());
      };
      for_each_message_schedule([&](const any_schedule& order, const std::string& name) {
        CAPTURE(name);
        check_by(order);
      });
      CHECK((check_by(schedules::automatic{}) == "shared_memory") == (some.sharing != nullptr));
    });
  });
}

TEST_CASE("nodes: without them, the tree of the ranks") {
  static auto silent = detail::table_of_communicator<node_communicator, serial_space>;
  silent.nodes = nullptr;
  const std::vector<int> nodes{0, 0, 0, 1};
  const auto blocks = node_communicator::make_blocks();
  const auto gradients = random_gradients<float>(4, cut.total(), 3);
  const auto reduced_by = [&](const detail::communicator_table& table) {
    auto all = gradients;
    const auto found = results_of(on_ranks(4, [&](const thread_communicator& threads) {
      const node_communicator comm(threads, nodes, blocks);
      auto& mine = all[static_cast<std::size_t>(comm.rank())];
      detail::plan_ptr made;
      return detail::run_once({"a test", of_floats(), by_table(table, comm), rule, schedules::automatic{}, cut,
                               detail::options_of_plan(options{.keep_plan = false})},
                              reinterpret_cast<std::byte*>(mine.data()), mine.size(), made);
    }));
    return with_findings(std::move(all), found);
  };
  check(reduced_by(silent), gradients);
  std::vector<float> by_node(cut.total());
  adasum_tree_by_node(exec, gradients, node_groups(nodes), by_node, cut);
  check_close<float>(cut, reduced_by(detail::table_of_communicator<node_communicator, serial_space>).front().gradient,
                     std::vector<double>(by_node.begin(), by_node.end()), gradients);
}

TEST_CASE("of a schedule") {
  using table = detail::schedule_table;
  const std::vector<without<table>> entries{{"uses_shared_memory", [](table& t) { t.uses_shared_memory = nullptr; }},
                                            {"chosen_name", [](table& t) { t.chosen_name = nullptr; }},
                                            {"leaf_ranks", [](table& t) { t.leaf_ranks = nullptr; }}};
  static const schedules::automatic order;
  for_each_absence(detail::table_of_schedule<schedules::automatic>, entries, [](const table& some) {
    for_each_gradients([&](const auto& gradients) {
      const auto ranks = reduce(gradients, [&](const auto& comm, const auto& choices) -> detail::plan_arguments {
        return {"a test", of_floats(), detail::ref_to_communicator(exec, comm), rule, {some, &order}, cut, choices};
      });
      check(ranks, gradients);
      const auto& found = ranks.front().found;
      if (some.chosen_name == nullptr) CHECK(found.schedule() == "automatic");
      CHECK((found.bytes_sent() == 0) == (some.uses_shared_memory != nullptr));
    });
  });
}

TEST_CASE("of a rule: without whole_model, each segment has weights of its own") {
  static auto by_segment = detail::table_of_rule<rules::adacons>;
  by_segment.whole_model = nullptr;
  const auto gradients = random_gradients<float>(5, cut.total(), 3);
  const auto by = [&](detail::rule_ref adacons) {
    return reduce(
               gradients,
               [&](const auto& comm, const auto& choices) -> detail::plan_arguments {
                 return {
                     "a test", of_floats(), detail::ref_to_communicator(exec, comm), adacons, schedules::all_to_all{},
                     cut,      choices};
               })
        .front()
        .gradient;
  };
  rules::adacons whole, each{.per_segment = true};
  CHECK(by(detail::rule_ref(by_segment, &whole)) == by(each));
  CHECK(by(whole) != by(each));
}

}  // namespace test_of_detail_references_absent_members
