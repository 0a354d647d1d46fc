// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls on gradients of one process: what they take, and elements of which types.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <adasum/accumulator.hpp>
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/exec/threads.hpp>
#include <adasum/pair.hpp>
#include <adasum/rules/multi_krum.hpp>
#include <adasum/tree.hpp>

#include "check_findings.hpp"
#include "combination.hpp"
#include "near.hpp"

namespace test_of_works_together_local {

using namespace adasum;
using namespace adasum::test;

namespace {

const segments cut{40, 17, 33};

/// The calls with which every space begins, on elements of one type.
template <scalar T, class Space>
void check_elements(const Space& exec, element type, std::string_view space, findings& found) {
  const auto gradients = gradients_of_workers<T>(3, cut.total(), 5);
  std::vector<T> out(cut.total());
  adasum_tree(exec, gradients, out, cut);
  check_near<T>(out, gradients, rules::adasum{}, cut);
  found.note("elements × spaces", to_string(type), space, "right");
  found.count("right");
}

}  // namespace

TEST_CASE("works together: calls in one process") {
  findings found;
  const serial_space exec;
  const auto g = gradients_of_workers<float>(4, cut.total(), 9);
  const std::vector<std::vector<float>> two{g[0], g[1]};
  const auto whole = segments::whole(cut.total());
  std::vector<float> out(cut.total());
  const auto note = [&](std::string_view call, std::string_view argument, const auto& gradients, const auto& rule,
                        const segments& segs) {
    check_near<float>(out, gradients, rule, segs);
    found.note("calls × arguments", call, argument, "right");
    found.count("right");
  };
  adasum_pair(exec, g[0], g[1], out);
  note("adasum_pair", "gradients", two, rules::adasum{}, whole);
  adasum_pair(exec, g[0], g[1], out, cut);
  note("adasum_pair", "segments", two, rules::adasum{}, cut);
  adasum_tree(exec, g, out);
  note("adasum_tree", "gradients", g, rules::adasum{}, whole);
  CHECK(adasum_tree(exec, g, out, cut).contributions() == 4);
  note("adasum_tree", "segments", g, rules::adasum{}, cut);
  note("adasum_tree", "a report", g, rules::adasum{}, cut);

  combine(exec, g, out, cut);
  note("combine", "segments", g, rules::adasum{}, cut);
  combine(exec, g, out, rules::mean{}, cut);
  note("combine", "another rule", g, rules::mean{}, cut);
  CHECK(combine(exec, g, out, cut, rules::multi_krum{}).rule() == "multi_krum");
  note("combine", "rules of all at once", g, rules::multi_krum{}, cut);
  note("combine", "a report", g, rules::multi_krum{}, cut);
  CHECK_FALSE(combine(exec, g, out, rules::mean{}, {.measure = measuring::when_needed}).measured());
  note("combine", "measure", g, rules::mean{}, whole);
  auto bad = g;
  bad[1][50] = infinity<float>();
  const auto without = combine(exec, bad, out, cut, {.nonfinite = nonfinite_policy::exclude});
  CHECK(without.excluded() == std::vector{1});
  bad[1].assign(cut.total(), 0);
  note("combine", "nonfinite", bad, rules::adasum{}, cut);

  const auto add_all = [&](auto total) {
    for (const auto& gradient : g) total.add(gradient);
    std::ranges::copy(total.gradient(), out.begin());
  };
  add_all(plan_accumulator<float>(exec, cut));
  note("plan_accumulator", "segments", g, rules::adasum_linear{}, cut);
  add_all(plan_accumulator<float>(exec, cut, rules::mean{}));
  note("plan_accumulator", "another rule", g, rules::mean{}, cut);

  check_elements<float>(exec, element::of_float, "serial_space", found);
  check_elements<double>(exec, element::of_double, "serial_space", found);
  check_elements<Eigen::half>(exec, element::of_half, "serial_space", found);
  check_elements<Eigen::bfloat16>(exec, element::of_bfloat16, "serial_space", found);
  const threads_space threads(2);
  check_elements<float>(threads, element::of_float, "threads_space", found);
  check_elements<double>(threads, element::of_double, "threads_space", found);
  check_elements<Eigen::half>(threads, element::of_half, "threads_space", found);
  check_elements<Eigen::bfloat16>(threads, element::of_bfloat16, "threads_space", found);
  check_findings(found, "local");
}

}  // namespace test_of_works_together_local
