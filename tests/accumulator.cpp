// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_accumulator {

using namespace adasum;
using namespace adasum::test;

namespace {

const segments cut{7, 0, 30, 3};

template <class Rule>
vec accumulated(const Rule& rule, const std::vector<vec>& gradients) {
  auto total = plan_accumulator<double>(serial_space{}, cut, rule);
  for (const auto& gradient : gradients) total.add(gradient);
  CHECK(total.count() == gradients.size());
  const auto sum = total.gradient();
  return {sum.begin(), sum.end()};
}

template <class Rule>
vec at_once(const Rule& rule, const std::vector<vec>& gradients) {
  vec out(cut.total());
  combine(serial_space{}, gradients, out, rule, cut);
  return out;
}

}  // namespace

TEST_CASE("one gradient at a time gives what all of them together give") {
  for (const std::size_t n : {1u, 2u, 3u, 8u}) {
    const auto g = random_gradients<double>(n, cut.total(), n);
    const auto close = [](const vec& a, const vec& b) { return distance(a, b) <= 1e-13 * norm_of(b); };
    CHECK(close(accumulated(rules::adasum{}, g), at_once(rules::adasum_linear{}, g)));
    CHECK(close(accumulated(rules::sum{}, g), at_once(rules::sum{}, g)));
    CHECK(close(accumulated(rules::mean{}, g), at_once(rules::mean{}, g)));
  }
}

TEST_CASE("reset forgets, and the memory stays") {
  const auto g = random_gradients<double>(3, cut.total(), 1);
  auto total = plan_accumulator<double>(serial_space{}, cut);
  total.add(g[0]);
  const auto* const memory = total.gradient().data();
  total.add(g[1]);
  total.reset();
  CHECK(total.count() == 0);
  total.add(g[2]);
  CHECK(vec(total.gradient().begin(), total.gradient().end()) == g[2]);
  CHECK(total.gradient().data() == memory);
}

TEST_CASE("bad input names the sizes and changes nothing") {
  auto total = plan_accumulator<double>(serial_space{}, cut);
  const auto g = random_gradients<double>(1, cut.total(), 2).front();
  total.add(g);
  CHECK_THROWS_WITH_AS(total.add(vec(39)), doctest::Contains("39"), bad_input);
  CHECK_THROWS_AS(total.add(total.gradient()), bad_input);
  CHECK_THROWS_AS(total.add(std::span<const double>(static_cast<const double*>(nullptr), cut.total())), bad_input);
  CHECK(total.count() == 1);
  CHECK(vec(total.gradient().begin(), total.gradient().end()) == g);
}

TEST_CASE("a length is enough, and the rule is Adasum unless another is given") {
  auto of_length = plan_accumulator<float>(serial_space{}, 2);
  of_length.add(std::vector<float>{3, 0});
  of_length.add(std::vector<float>{0, 4});
  CHECK(std::vector(of_length.gradient().begin(), of_length.gradient().end()) == std::vector<float>{3, 4});
  auto means = plan_accumulator<float>(serial_space{}, segments{1, 1}, rules::mean{});
  means.add(std::vector<float>{3, 0});
  means.add(std::vector<float>{0, 4});
  CHECK(std::vector(means.gradient().begin(), means.gradient().end()) == std::vector<float>{1.5f, 2});
}

}  // namespace test_of_accumulator
