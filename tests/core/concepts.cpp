// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rule and an execution space of the user's own, written from core/concepts.hpp alone, in the public calls.
#include <adasum/combine.hpp>
#include <adasum/core/concepts.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/sum.hpp>
#include <adasum/tree.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/oracle_errors.hpp"
#include "support/oracle_range.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_core_concepts {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Keeps the longer of two vectors.
struct longest {
  static constexpr std::string_view name = "longest";
  pair_weights operator()(const pair_gram& g) const { return g.aa >= g.bb ? pair_weights{1, 0} : pair_weights{0, 1}; }
};

/// The mean of the unit vectors gᵢ/‖gᵢ‖, times a factor that it counts up at each segment: it has a state.
struct mean_of_units {
  static constexpr std::string_view name = "mean of units";
  int calls = 0;
  void operator()(gram_view gram, std::span<double> weights) {
    ++calls;
    for (std::size_t i = 0; i < gram.size(); ++i)
      weights[i] = gram(i, i) > 0 ? calls / (static_cast<double>(gram.size()) * std::sqrt(gram(i, i))) : 0;
  }
};

/// The mean, once every gradient has been given their mean length: of degree one, as a direct combination asks of a
/// rule.
struct balanced {
  static constexpr std::string_view name = "balanced";
  void operator()(gram_view gram, std::span<double> weights) const {
    const auto n = static_cast<double>(gram.size());
    double mean_norm = 0;
    for (std::size_t i = 0; i < gram.size(); ++i) mean_norm += std::sqrt(gram(i, i)) / n;
    for (std::size_t i = 0; i < gram.size(); ++i) weights[i] = mean_norm / (n * std::sqrt(gram(i, i)));
  }
};

/// Plain loops, double accumulators. Counts its calls.
class plain_space {
 public:
  static constexpr std::string_view name = "plain";

  template <class T>
  std::vector<T> allocate(std::size_t count) const {
    return std::vector<T>(count);
  }

  template <class T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    ++*measures_;
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (std::size_t i = 0; i < vectors.size(); ++i)
        for (std::size_t j = 0; j <= i; ++j) {
          double sum = 0;
          bool zero = true;
          for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
            sum += static_cast<double>(vectors[i][x]) * static_cast<double>(vectors[j][x]);
            zero = zero && vectors[i][x] == T{0};
          }
          if (i == j && sum == 0 && !zero) sum = std::numeric_limits<double>::denorm_min();
          gram[k * packed_size(vectors.size()) + packed_index(i, j)] = sum;
        }
  }

  template <class T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
        double sum = 0;
        for (std::size_t i = 0; i < vectors.size(); ++i)
          sum += weights[k * vectors.size() + i] * static_cast<double>(vectors[i][x]);
        out[x] = static_cast<T>(sum);
      }
  }

  template <class T>
  void copy(const T* from, T* to, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
  }

  void fence() const { ++*fences_; }
  friend bool operator==(const plain_space&, const plain_space&) = default;

  int measures() const { return *measures_; }
  int fences() const { return *fences_; }

 private:
  std::shared_ptr<int> measures_ = std::make_shared<int>(0), fences_ = std::make_shared<int>(0);
};

static_assert(pairwise_rule<longest> && !gram_rule<longest> && rule<longest>);
static_assert(gram_rule<mean_of_units> && !pairwise_rule<mean_of_units> && rule<mean_of_units>);
static_assert(execution_space<plain_space, float> && execution_space<plain_space, double>);
static_assert(execution_space<serial_space, float>);
static_assert(!execution_space<plain_space, int> && !rule<plain_space> && !execution_space<longest>);

const segments cut{40, 0, 21, 70};

}  // namespace

TEST_CASE_TEMPLATE("a foreign pairwise rule", T, float, double) {
  for (const std::size_t n : sizes{1, 2, 3, 5, 8}) {
    const auto g = random_gradients<T>(n, cut.total(), n, gradient_kind::scaled);
    std::vector<T> out(cut.total());
    const auto found = combine(serial_space{}, g, out, longest{}, cut);
    CHECK(found.rule() == "longest");
    for (std::size_t k = 0; k < cut.size(); ++k) {
      std::size_t best = 0;  // ties go to the first
      const auto leaves = oracle_leaves(g, segments_view(cut).range(k));
      for (std::size_t i = 1; i < n; ++i)
        if (leaves[i].mass > leaves[best].mass) best = i;
      for (auto x = cut.offset(k); x < cut.offset(k) + cut.length(k); ++x) REQUIRE(out[x] == g[best][x]);
      CHECK(found.weight(best, k) == 1);
    }
  }
}

TEST_CASE_TEMPLATE("a foreign rule of the whole Gram matrix, with a state", T, float, double) {
  for (const std::size_t n : sizes{1, 2, 3, 5, 8}) {
    const auto g = random_gradients<T>(n, cut.total(), n);
    std::vector<T> out(cut.total());
    const auto found = combine(serial_space{}, g, out, mean_of_units{}, cut);
    CHECK(found.rule() == "mean of units");
    for (std::size_t k = 0; k < cut.size(); ++k) {
      const auto leaves = oracle_leaves(g, segments_view(cut).range(k));
      const auto factor = static_cast<real>(k + 1);
      for (std::size_t x = 0; x < cut.length(k); ++x) {
        real exact = 0, mass = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const real term = factor * leaves[i].value[x] / (static_cast<real>(n) * leaves[i].mass);
          exact += term;
          mass += std::abs(term);
        }
        const real weights = (inner_product_error<T>(n, cut.length(k)) + 8 * unit_of_double) * mass;
        REQUIRE(std::abs(static_cast<real>(out[cut.offset(k) + x]) - exact) <=
                weights + mix_error<T>(n, mass, std::abs(exact)));
      }
    }
  }
}

TEST_CASE("a foreign rule of the whole Gram matrix where squares overflow" * doctest::skip(!real_holds_squares)) {
  for (const double scale : {1e200, 1e-200}) {
    CAPTURE(scale);
    auto g = random_gradients<double>(3, 50, 1);
    for (auto& vector : g)
      for (double& value : vector) value *= scale;
    std::vector<double> out(50);
    CHECK(combine(serial_space{}, g, out, balanced{}).recombined_segments() == 1);
    const auto leaves = oracle_leaves(g, {0, 50});
    const real mean_norm = (leaves[0].mass + leaves[1].mass + leaves[2].mass) / 3;
    for (std::size_t x = 0; x < 50; ++x) {
      real exact = 0, mass = 0;
      for (const auto& leaf : leaves) {
        const real term = leaf.value[x] * mean_norm / (3 * leaf.mass);
        exact += term;
        mass += std::abs(term);
      }
      const real weights = (inner_product_error<double>(3, 50) + 8 * unit_of_double) * mass;
      REQUIRE(std::abs(static_cast<real>(out[x]) - exact) <= weights + mix_error<double>(3, mass, std::abs(exact)));
    }
  }
}

TEST_CASE_TEMPLATE("a foreign execution space", T, float, double) {
  const plain_space space;
  for (const std::size_t n : sizes{1, 2, 3, 5, 8})
    for (const auto kind : all_gradient_kinds) {
      CAPTURE(n);
      CAPTURE(to_string(kind));
      const auto g = random_gradients<T>(n, cut.total(), n, kind);
      std::vector<T> out(cut.total());
      const auto check = [&](auto rule) {
        const int measures = space.measures(), fences = space.fences();
        combine(space, g, out, rule, cut);
        const auto oracle = oracle_with_errors<T>(rule, g, cut);
        CHECK(worst_error_over_bound(out, oracle.values, oracle.gram_error, cut) <= 1);
        CHECK(space.measures() == measures + 1);  // it names no round_bytes: all segments in one round
        CHECK(space.fences() > fences);
      };
      check(rules::adasum{});
      check(rules::sum{});
      check(rules::mean{});
    }
}

TEST_CASE("a foreign execution space through adasum_pair and adasum_tree, direct segments included" *
          doctest::skip(!real_holds_squares)) {
  const plain_space space;
  auto g = random_gradients<double>(4, cut.total(), 1);
  for (auto& vector : g)
    for (std::size_t x = 0; x < 40; ++x) vector[x] *= 1e170;
  std::vector<double> out(cut.total());
  adasum_pair(space, g[0], g[1], out, cut);
  const std::vector two{g[0], g[1]};
  auto oracle = oracle_with_errors<double>(rules::adasum{}, two, cut);
  CHECK(worst_error_over_bound(out, oracle.values, oracle.either(), cut) <= 1);
  CHECK(adasum_tree(space, g, out, cut).recombined_segments() == 1);
  oracle = oracle_with_errors<double>(rules::adasum{}, g, cut);
  CHECK(worst_error_over_bound(out, oracle.values, oracle.either(), cut) <= 1);
}

TEST_CASE("a foreign rule on a foreign execution space") {
  const auto g = random_gradients<float>(5, cut.total(), 2);
  std::vector<float> plain(cut.total()), serial(cut.total());
  combine(plain_space{}, g, plain, longest{}, cut);
  combine(serial_space{}, g, serial, longest{}, cut);
  CHECK(plain == serial);
}

}  // namespace test_of_core_concepts
