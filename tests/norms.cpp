// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients of any norm, alike and beside others that are far longer or shorter: every call and schedule gives finite
// results, which are those of long double, whose range holds all squares and products of squares.
#include <adasum/adasum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/every_instruction_set.hpp"
#include "support/norms.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_norms {

using namespace adasum;
using namespace adasum::test;

namespace {

/// By the bounds of oracle_errors.hpp.
template <class T, class Rule>
void check_result(const std::vector<T>& out, const report& found, const Rule& rule, const gradients_of<T>& g) {
  const segments cut{g.front().size()};
  const auto oracle = oracle_with_errors<T>(rule, g, cut);
  CHECK(worst_error_over_bound(out, oracle.values, oracle.either(), cut) <= 1);
  CHECK(found.finite());
  CHECK(std::isfinite(found.result_norm(0)));
  CHECK(std::isfinite(found.orthogonality()));
}

/// Every call of one process.
template <class T>
void check_local(const gradients_of<T>& g) {
  const serial_space exec;
  std::vector<T> out(g.front().size());
  const auto check = [&](const auto& rule) {
    const auto found = combine(exec, g, out, rule);
    check_result(out, found, rule, g);
  };
  check(rules::adasum{});
  check(rules::mean{});
  check(rules::sum{});

  const gradients_of<T> two{g[0], g[1]};
  const auto found = adasum_tree(exec, two, out);
  check_result(out, found, rules::adasum{}, two);
  auto pair = out;
  adasum_pair(exec, g[0], g[1], pair);
  CHECK(same_bits(pair, out));
  auto total = plan_accumulator<T>(exec, segments{out.size()});
  for (const auto& gradient : two) total.add(gradient);
  CHECK(same_bits(std::vector<T>(total.gradient().begin(), total.gradient().end()), out));
}

// ── other rules, in long double on the vectors themselves ──

std::vector<real_vector> in_long_double(const auto& g) {
  std::vector<real_vector> vectors;
  for (const auto& leaf : oracle_leaves(g, {0, g.front().size()})) vectors.push_back(leaf.value);
  return vectors;
}

void add(real_vector& to, real factor, const real_vector& what) {
  for (std::size_t x = 0; x < to.size(); ++x) to[x] += factor * what[x];
}

real_vector on_vectors(const rules::adasum_linear&, const std::vector<real_vector>& g) {
  auto total = g.front();
  for (std::size_t i = 1; i < g.size(); ++i) {
    const auto [a, b] = oracle_weights(rules::adasum{}, total, g[i], i, 1);
    for (real& x : total) x *= a;
    add(total, b, g[i]);
  }
  return total;
}

real_vector on_vectors(const rules::unit_mean&, const std::vector<real_vector>& g) {
  real_vector result(g.front().size(), 0);
  for (const auto& v : g) add(result, 1 / (static_cast<real>(g.size()) * norm(v)), v);
  return result;
}

real_vector on_vectors(const rules::adacons& rule, const std::vector<real_vector>& g) {
  const auto n = static_cast<real>(g.size()), epsilon = static_cast<real>(rule.epsilon);
  real_vector result(g.front().size(), 0), mean = result, alpha;
  real mean_norm = 0, sum = 0;
  for (const auto& v : g) add(mean, 1 / n, v), mean_norm += norm(v) / n;
  for (const auto& v : g) alpha.push_back(dot(v, mean) / (norm(v) + epsilon)), sum += alpha.back();
  const real s = rule.scale == rules::adacons::scaling::mean_norm ? mean_norm : 1;
  for (std::size_t i = 0; i < g.size(); ++i) add(result, s * alpha[i] / sum / (norm(g[i]) + epsilon), g[i]);
  return result;
}

/// For one neighbour (n - byzantine - 2 = 1).
real_vector on_vectors(const rules::multi_krum& rule, const std::vector<real_vector>& g) {
  std::vector<std::pair<real, std::size_t>> nearest;
  for (std::size_t i = 0; i < g.size(); ++i) {
    nearest.emplace_back(std::numeric_limits<real>::infinity(), i);
    for (std::size_t j = 0; j < g.size(); ++j) {
      auto difference = g[i];
      add(difference, -1, g[j]);
      if (j != i) nearest.back().first = std::min(nearest.back().first, norm(difference));
    }
  }
  std::ranges::stable_sort(nearest, {}, [](const auto& one) { return one.first; });
  real_vector result(g.front().size(), 0);
  for (std::size_t k = 0; k < rule.selected; ++k)
    add(result, 1 / static_cast<real>(rule.selected), g[nearest[k].second]);
  return result;
}

/// Weights with a few hundred roundings of double (and of inner products in float lanes) change a result by as much of
/// the vectors that are mixed; wrong ones by about as much as all of it.
template <class T, class Rule>
void check_other_rule(const Rule& rule, const gradients_of<T>& g) {
  CAPTURE(std::string(Rule::name));
  const auto exact = on_vectors(rule, in_long_double(g));
  const real accuracy = std::is_same_v<T, double> ? 1e-11L : 1e-4L;
  const auto check = [&](const std::vector<T>& out, const report& found) {
    auto error = in_long_double(gradients_of<T>{out}).front();
    add(error, -1, exact);
    real longest = norm(exact);
    if constexpr (pairwise_rule<Rule>)
      for (const auto& v : in_long_double(g)) longest = std::max(longest, norm(v));
    CHECK(norm(error) <= accuracy * longest);
    CHECK(found.finite());
    CHECK(std::isfinite(found.result_norm(0)));
  };
  std::vector<T> out(g.front().size());
  const auto found = combine(serial_space{}, g, out, Rule(rule));
  check(out, found);
  const segments cut{out.size()};
  const auto by_messages = reduce_on_threads<T>(g, cut, rule, schedules::all_to_all{});
  check_same_on_all_ranks(by_messages);
  check(by_messages.front().gradient, by_messages.front().found);
  const auto in_place = reduce_on_threads<T>(g, cut, rule, schedules::shared_memory{});
  check_same_on_all_ranks(in_place);
  check(in_place.front().gradient, in_place.front().found);
}

}  // namespace

TEST_CASE("a weight beyond the largest float") {
  // 1 - a·b / (2 a·a) = 1 - 5e38; the second one loses half of what lies along the first.
  const std::vector<float> a{1e-30f, 0}, b{1e9f, 1e9f}, expected{5e8f, 1e9f};
  for (const auto set : every_instruction_set()) {
    CAPTURE(to_string(set));
    std::vector<float> out(2);
    const auto check = [&] {
      for (std::size_t x = 0; x < 2; ++x) CHECK(out[x] == doctest::Approx(expected[x]).epsilon(1e-6));
    };
    adasum_pair(serial_space(set), a, b, out);
    check();
    adasum_pair(serial_space(set), b, a, out);
    check();
    adasum_tree(serial_space(set), gradients_of<float>{a, b}, out);
    check();
  }
}

TEST_CASE_TEMPLATE("calls of one process", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t n : sizes{2, 3, 5})
    for (const std::size_t length : sizes{2, 40}) {
      CAPTURE(n);
      CAPTURE(length);
      for_each_choice_of_norms<T>(n, length, [](const auto& g) { check_local<T>(g); });
    }
}

TEST_CASE_TEMPLATE("every schedule, by messages and in shared memory", T, double, float) {
  for (const auto n : few_or_all<std::size_t>({3}, {2, 3, 5})) {
    CAPTURE(n);
    for_each_choice_of_norms<T>(n, 12, [](const auto& g) {
      check_every_schedule<T>(g, segments{12}, rules::adasum{});
      check_every_schedule<T>(g, segments{12}, rules::mean{});
    });
  }
}

TEST_CASE("messages of 16 bits") {
  for (const auto& norms : norms_under_test<float>())
    for (const std::size_t n : sizes{2, 3}) {
      CAPTURE(norms.front());
      CAPTURE(norms.back());
      CAPTURE(n);
      const auto g = with_norms<float>(n, 12, norms, gradient_kind::independent, n);
      const auto exact = oracle_combine(rules::adasum{}, g, segments{12});
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto ranks =
            reduce_on_threads<float>(g, segments{12}, rules::adasum{}, order, options{.wire = wire_format::bfloat16});
        check_same_on_all_ranks(ranks);
        auto error = in_long_double(gradients_of<float>{ranks.front().gradient}).front();
        add(error, -1, exact);
        // Each of at most three levels rounds vectors by 2^-8, and their directions, by which others are shortened.
        CHECK(norm(error) <= 12 * 0x1p-8L * static_cast<real>(std::max(norms.front(), norms.back())));
      });
    }
}

TEST_CASE_TEMPLATE("rules beyond adasum, sum and mean", T, double, float) {
  for (const auto n : few_or_all<std::size_t>({5}, {2, 4, 5}))
    for_each_choice_of_norms<T>(n, 12, [&](const auto& g) {
      CAPTURE(n);
      check_other_rule<T>(rules::adasum_linear{}, g);
      check_other_rule<T>(rules::unit_mean{}, g);
      if (n > 2) check_other_rule<T>(rules::multi_krum{.byzantine = n - 3, .selected = 2}, g);
    });
}

TEST_CASE_TEMPLATE("adacons, of gradients that agree", T, double, float) {
  // ε is for norms of zero; where it counts beside others, results do not scale with the gradients.
  for (const auto& norms : norms_under_test<T>())
    for (const std::size_t n : sizes{2, 5}) {
      CAPTURE(norms.front());
      CAPTURE(norms.back());
      CAPTURE(n);
      const auto g = with_norms<T>(n, 12, norms, gradient_kind::near_parallel, n);
      check_other_rule<T>(rules::adacons{.epsilon = 0}, g);
      check_other_rule<T>(rules::adacons{.epsilon = 0, .scale = rules::adacons::scaling::mean_norm}, g);
      check_other_rule<T>(rules::adacons{.epsilon = 0, .per_segment = true}, g);
    }
}

namespace {

/// Adasum of the whole model: a pairwise rule, applied along the tree.
struct whole_adasum : rules::adasum {
  static constexpr std::string_view name = "whole_adasum";
  bool whole_model() const { return true; }
};

const segments model{7, 0, 20, 5};

/// Rank i's segment k is about scales[i mod scales][k] long; the empty one has no scale.
using scales_of_ranks = std::vector<std::array<double, 4>>;
gradients_of<double> with_scales(std::size_t n, const scales_of_ranks& scales) {
  auto g = random_gradients<double>(n, model.total(), n, gradient_kind::near_parallel);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < model.size(); ++k)
      for (std::size_t x = model.offset(k); x < model.offset(k + 1); ++x) g[i][x] *= scales[i % scales.size()][k];
  return g;
}

/// The result is the sum of the gradients by the report's weights, and the report's norms are those of the gradients and of the
/// result. Inner products of so few elements have errors of 1e-14, and what follows from these is within 1e-12 of what is
/// added up. Beyond the largest double, norms are that; below the smallest normal one, all that follows is rounded to a
/// multiple of the least.
void check_report(const gradients_of<double>& g, const std::vector<double>& out, const report& found) {
  CHECK(found.finite());
  CHECK(found.recombined_segments() == model.size());
  constexpr real least = std::numeric_limits<double>::denorm_min();
  constexpr real largest = std::numeric_limits<double>::max();
  for (std::size_t k = 0; k < model.size(); ++k) {
    CAPTURE(k);
    const index_range elements{model.offset(k), model.offset(k + 1)};
    const auto leaves = oracle_leaves(g, elements);
    real mass = 0;
    for (std::size_t i = 0; i < g.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(static_cast<real>(found.norm(i, k)) - std::min(leaves[i].mass, largest)) <=
            1e-13L * leaves[i].mass + least);
      mass += std::abs(static_cast<real>(found.weight(i, k))) * leaves[i].mass;
    }
    real error = 0;
    for (auto x = elements.begin; x < elements.end; ++x) {
      real sum = 0;
      for (std::size_t i = 0; i < g.size(); ++i) sum += static_cast<real>(found.weight(i, k)) * g[i][x];
      error = std::max(error, std::abs(out[x] - sum));
    }
    CHECK(error <= 1e-12L * mass + static_cast<real>(g.size()) * least);
    const auto result = oracle_leaves(gradients_of<double>{out}, elements).front();
    CHECK(std::abs(static_cast<real>(found.result_norm(k)) - std::min(result.mass, largest)) <=
          1e-12L * mass + 10 * least);
    CHECK((mass <= 1000 * least || result.mass > 0.01L * mass));  // so that this says something
  }
}

template <class Rule>
void check_every_report(const gradients_of<double>& g, const Rule& rule) {
  CAPTURE(std::string(Rule::name));
  std::vector<double> out(model.total());
  Rule used(rule);
  const auto found = combine(serial_space{}, g, out, used, model);
  check_report(g, out, found);
  const auto check_ranks = [&](const auto& order) {
    const auto ranks = reduce_on_threads<double>(g, model, rule, order);
    check_same_on_all_ranks(ranks);
    check_report(g, ranks.front().gradient, ranks.front().found);
  };
  check_ranks(schedules::all_to_all{});
  check_ranks(schedules::shared_memory{});
}

}  // namespace

TEST_CASE("rules for the whole model, where squares leave the range of double: the report has every segment's norms") {
  // Segments alike; one beside which the others are short; ranks of very different lengths.
  const std::vector<scales_of_ranks> choices{{{1e170, 1, 1e170, 1e170}},
                                             {{1e160, 1, 1e300, 1e158}},
                                             {{1, 1, 1e170, 1e-90}},
                                             {{1e-170, 1, 1e-190, 1e-200}},
                                             {{1e170, 1, 1e170, 1e170}, {1, 1, 2, 3}},
                                             {{1e-170, 1, 1e-160, 1e-170}, {1, 1, 2, 3}},
                                             {{1e160, 1, 1e165, 1e155}, {1e-130, 1, 1e-140, 1e-135}},
                                             {{1e-20, 1, 1e300, 1e-300}},
                                             {{1e-160, 1, 1e150, 1}},
                                             {{1e-300, 1, 1, 1e-310}},
                                             {{1e301, 1, 1e304, 1}},
                                             {{1e-300, 1, 1e280, 1}, {1e-290, 1, 1e283, 1e-280}}};
  for (std::size_t choice = 0; choice < choices.size(); ++choice)
    for (const std::size_t n : sizes{2, 3, 5}) {
      CAPTURE(choice);
      CAPTURE(n);
      const auto g = with_scales(n, choices[choice]);
      check_every_report(g, rules::adacons{});
      check_every_report(g, rules::adacons{.scale = rules::adacons::scaling::mean_norm});
      check_every_report(g, rules::pcgrad{});
      check_every_report(g, rules::multi_krum{.selected = 2});
      check_every_report(g, whole_adasum{});
    }
}

TEST_CASE("finite gradients are finite in the report, however long, also those that are left out") {
  const auto check = [](const gradients_of<double>& g, const auto& rule, std::size_t longest) {
    const segments cut{2, 3};
    const auto check_report = [&](const report& found) {
      CHECK(found.finite());
      CHECK(found.nonfinite().empty());
      const auto norm = oracle_leaves(g, {2, 5})[longest].mass;
      CHECK(found.norm(longest, 1) ==
            doctest::Approx(static_cast<double>(std::min<real>(norm, std::numeric_limits<double>::max()))));
      CHECK(std::isfinite(found.orthogonality()));
    };
    std::vector<double> out(5);
    check_report(combine(serial_space{}, g, out, rule, cut));
    CHECK(std::ranges::all_of(out, [](double x) { return std::isfinite(x); }));
    const auto check_ranks = [&](const auto& order) {
      const auto ranks = reduce_on_threads<double>(g, cut, rule, order);
      check_same_on_all_ranks(ranks);
      check_report(ranks.front().found);
      CHECK(std::ranges::all_of(ranks.front().gradient, [](double x) { return std::isfinite(x); }));
    };
    check_ranks(schedules::all_to_all{});
    check_ranks(schedules::shared_memory{});
  };
  for (const double length : {1e155, 1e200, 1e301, 1e308}) {
    CAPTURE(length);
    const gradients_of<double> far{{1, 2, 3, 4, 5}, {1, 1, length, length, length}, {1, 2, 3, 4, 4}, {1, 2, 3, 5, 5}};
    const gradients_of<double> all{
        {1, 2, length, 4, length}, {1, 1, length, length, length}, {1, 2, length, length, 4}};
    for (const bool per_segment : {false, true}) {
      CAPTURE(per_segment);
      check(far, rules::multi_krum{.byzantine = 1, .per_segment = per_segment}, 1);
      check(far, rules::geometric_median{.per_segment = per_segment}, 1);
      check(far, rules::centred_clipping{.radius = 1, .per_segment = per_segment}, 1);
      check(all, rules::multi_krum{.byzantine = 1, .per_segment = per_segment}, 1);
    }
    check(all, rules::adasum{}, 1);
    check(all, whole_adasum{}, 1);
    check(all, rules::mean{}, 1);
  }
}

TEST_CASE("rules for the whole model: a NaN of one rank does not make others' long gradients infinite") {
  auto g = with_scales(3, {{1e170, 1, 1e170, 1}});
  g[1][0] = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> out(model.total());
  const auto check = [&](const report& found) {
    CHECK(found.nonfinite() == std::vector<nonfinite_input>{{1, 0}});
    CHECK(found.norm(0, 0) == doctest::Approx(1e170).epsilon(10));
    CHECK(std::isnan(found.result_norm(2)));
  };
  check(combine(serial_space{}, g, out, rules::adacons{}, model));
  check(reduce_on_threads<double>(g, model, rules::adacons{}, schedules::all_to_all{}).front().found);
}

}  // namespace test_of_norms
