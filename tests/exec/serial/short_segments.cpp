// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs of short segments of floats, which serial_space takes in one call each: measured and mixed as the long double oracle
// says, at every place of a window, and nothing else is read or written.
#include <doctest/doctest.h>

#include <adasum/exec/serial.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/every_instruction_set.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_exec_serial_short_segments {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Every length up to one more than is short, in an order in which each follows several others; long segments among them.
segments mixed_lengths() {
  std::vector<std::size_t> lengths;
  for (std::size_t k = 0; k < 72; ++k) lengths.push_back(k % 24 == 23 ? 100 : 7 * k % 18);
  return segments(lengths);
}

/// Vectors that hold nothing outside the window, so that a sanitizer sees who reads there.
struct held_vectors {
  std::vector<std::vector<float>> all, held;
  slice window;

  held_vectors(std::size_t n, const segments& cut, index_range range)
      : all(random_gradients<float>(n, cut.total(), n)), window{cut, range, range.begin} {
    for (const auto& vector : all)
      held.emplace_back(vector.begin() + static_cast<std::ptrdiff_t>(range.begin),
                        vector.begin() + static_cast<std::ptrdiff_t>(range.end));
  }
  std::vector<const float*> pointers() const {
    std::vector<const float*> at;
    for (const auto& vector : held) at.push_back(vector.data());
    return at;
  }
};

template <class Check>
void for_each_case(const Check& check) {
  const segments cut = mixed_lengths();
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 3, 4, 8, 9, 65})
      for (const auto& range :
           {index_range{0, cut.total()}, {11, cut.total() - 3}, {cut.offset(30) + 1, cut.offset(34)}}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(range.begin);
        check(serial_space(set), cut, held_vectors(n, cut, range));
      }
}

}  // namespace

TEST_CASE("Gram matrices of short segments are those of doubles") {
  for_each_case([](const serial_space& space, const segments& cut, const held_vectors& g) {
    const auto n = g.all.size();
    std::vector<double> gram(cut.size() * packed_size(n), 1e99);  // to be overwritten
    space.measure<float>(g.window, g.pointers(), gram.data());
    for (std::size_t k = 0; k < cut.size(); ++k) {
      const auto piece = g.window.local(k);
      if (cut.length(k) > 16) continue;  // in float lanes, where there are two vectors: tests/exec/serial/measure.cpp
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
          real exact = 0, size = 0;
          for (auto x = piece.begin; x < piece.end; ++x) {
            const auto product = static_cast<real>(g.held[i][x]) * static_cast<real>(g.held[j][x]);
            exact += product;
            size += std::abs(product);
          }
          // Products of floats are exact in double, and each is part of at most 16 sums.
          const real error = std::abs(static_cast<real>(gram[k * packed_size(n) + packed_index(i, j)]) - exact);
          REQUIRE(error <= 16 * 0x1p-53L * size);
        }
    }
  });
}

TEST_CASE("two vectors are measured to the same bits for a pair and for a tree") {
  for_each_case([](const serial_space& space, const segments& cut, const held_vectors& g) {
    if (g.all.size() > 2) return;
    std::vector<double> gram(cut.size() * 3), of_pairs(cut.size() * 3);
    space.measure<float>(g.window, g.pointers(), gram.data());
    detail::own_pairs<serial_space>::measure<float>(space, g.window, g.pointers(), of_pairs.data(), 0);
    CHECK(std::memcmp(gram.data(), of_pairs.data(), gram.size() * sizeof(double)) == 0);
  });
}

TEST_CASE("short segments are mixed in double, apart and in place; vectors of weight 0 do not matter") {
  for_each_case([](const serial_space& space, const segments& cut, held_vectors g) {
    const auto n = g.all.size();
    auto weights = uniform_numbers(n).vector(n * cut.size());
    if (n > 2)
      for (std::size_t k = 0; k < cut.size(); ++k) weights[k * n + k % n] = 0;
    constexpr float mark = 7;
    std::vector<float> out(g.window.range.size() + 40, mark);
    float* const from = out.data() + 20;
    // What a vector of weight 0 holds is nobody's business.
    for (std::size_t k = 0; k < cut.size(); ++k)
      for (std::size_t i = 0; i < n; ++i)
        if (weights[k * n + i] == 0)
          for (auto x = g.window.local(k).begin; x < g.window.local(k).end; ++x)
            g.held[i][x] = std::numeric_limits<float>::quiet_NaN();
    space.mix<float>(g.window, g.pointers(), weights.data(), from);
    CHECK(std::all_of(out.data(), from, [](float x) { return x == mark; }));
    CHECK(std::all_of(from + g.window.range.size(), out.data() + out.size(), [](float x) { return x == mark; }));
    for (std::size_t k = 0; k < cut.size(); ++k) {
      if (cut.length(k) > 16) continue;
      for (auto x = g.window.local(k).begin; x < g.window.local(k).end; ++x) {
        real exact = 0, mass = 0;
        for (std::size_t i = 0; i < n; ++i) {
          if (weights[k * n + i] == 0) continue;
          const auto term = static_cast<real>(weights[k * n + i]) * static_cast<real>(g.held[i][x]);
          exact += term;
          mass += std::abs(term);
        }
        // A product and a sum of doubles for each vector; then one rounding to float.
        const real double_error = 2 * static_cast<real>(n) * 0x1p-53L * mass;
        REQUIRE(std::abs(static_cast<real>(from[x]) - exact) <=
                double_error + 0x1p-24L * (std::abs(exact) + double_error));
      }
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(n, 3); ++i) {
      auto changed = g;
      space.mix<float>(changed.window, changed.pointers(), weights.data(), changed.held[i].data());
      CHECK(std::memcmp(changed.held[i].data(), from, g.window.range.size() * sizeof(float)) == 0);
    }
  });
}

TEST_CASE("an element of a short segment has the same bits wherever a window ends") {
  const segments cut = mixed_lengths();
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 5}) {
      CAPTURE(to_string(set));
      CAPTURE(n);
      const held_vectors g(n, cut, {0, cut.total()});
      const auto weights = uniform_numbers(n).vector(n * cut.size());
      std::vector<float> expected(cut.total()), out(cut.total());
      serial_space(set).mix<float>(g.window, g.pointers(), weights.data(), expected.data());
      for (const std::size_t piece : sizes{1, 2, 3, 5, 8, 13, 40}) {
        for (std::size_t begin = 0; begin < cut.total(); begin += piece) {
          const held_vectors part(n, cut, {begin, std::min(begin + piece, cut.total())});
          serial_space(set).mix<float>(part.window, part.pointers(), weights.data(), out.data() + begin);
        }
        REQUIRE(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)) == 0);
      }
    }
}

}  // namespace test_of_exec_serial_short_segments
