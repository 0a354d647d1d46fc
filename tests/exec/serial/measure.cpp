// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// serial_space::measure with every instruction set, against long double, within the bounds that measure.hpp documents.
#include <adasum/exec/serial.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/every_instruction_set.hpp"
#include "support/oracle.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_exec_serial_measure {

using namespace adasum;
using namespace adasum::test;

namespace {

/// |error of gᵢ·gⱼ| / Σ|gᵢ||gⱼ| as documented. One vector register holds `lanes` doubles, and one or two vectors are
/// measured in four at a time; the sums that emptied float lanes go through are in double.
template <class T>
real documented_bound(instruction_set set, std::size_t n, std::size_t length) {
  const auto lanes = static_cast<real>(vector_bytes(set) / sizeof(double) * (n <= 2 ? 4 : 1));
  const real in_double = (static_cast<real>(length) / lanes + lanes) * 0x1p-53L;
  const bool float_lanes = n <= 2 && format_of<T> != number_format::binary64;
  return float_lanes ? (64 + 1) * 0x1p-24L + in_double : in_double;
}

template <class T>
std::vector<const T*> pointers(const std::vector<std::vector<T>>& vectors, std::size_t from = 0) {
  std::vector<const T*> at;
  for (const auto& vector : vectors) at.push_back(vector.data() + from);
  return at;
}

template <class T>
std::vector<double> measure(const serial_space& space, const slice& window, const std::vector<const T*>& vectors) {
  std::vector<double> gram(window.segments.size() * packed_size(vectors.size()), 1e99);  // to be overwritten
  space.measure<T>(window, vectors, gram.data());
  return gram;
}

/// Checks every entry of one Gram matrix over the elements [piece.begin, piece.end) of the vectors.
template <class T>
void check_gram(const double* gram, const std::vector<std::vector<T>>& vectors, index_range piece,
                instruction_set set) {
  const auto leaves = oracle_leaves(vectors, piece);
  for (std::size_t i = 0; i < vectors.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      real exact = 0, size = 0;
      for (std::size_t x = 0; x < piece.size(); ++x) {
        const real product = leaves[i].value[x] * leaves[j].value[x];
        exact += product;
        size += std::abs(product);
      }
      const real error = std::abs(static_cast<real>(gram[packed_index(i, j)]) - exact);
      REQUIRE(error <= documented_bound<T>(set, vectors.size(), piece.size()) * size);
    }
}

}  // namespace

TEST_CASE_TEMPLATE("numbers of vectors × lengths", T, ADASUM_TEST_FORMATS) {
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 3, 4, 5, 8, 9, 17, 65})
      for (const std::size_t length : sizes{1, 7, 31, 64, 65, 129, 1100}) {
        if (n > 9 && length > 129) continue;
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(length);
        const auto g = random_gradients<T>(n, length, n + length, gradient_kind::low_rank);
        const auto gram = measure(serial_space(set), whole(segments{length}), pointers(g));
        check_gram(gram.data(), g, {0, length}, set);
      }
}

TEST_CASE_TEMPLATE("as from memory: within the documented bounds, whatever the length", T, ADASUM_TEST_FORMATS) {
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 3, 9, 17})
      for (const std::size_t length : sizes{1, 250, 511, 513, 1100, 2100}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(length);
        const auto g = random_gradients<T>(n, length, n + length);
        std::vector<double> gram(packed_size(n));
        serial_space(set).measure<T>(whole(segments{length}), pointers(g), gram.data(), true);
        check_gram(gram.data(), g, {0, length}, set);
      }
}

TEST_CASE_TEMPLATE("a window that begins and ends inside segments", T, ADASUM_TEST_FORMATS) {
  const segments cut{0, 37, 100, 1, 0, 200, 162, 0};
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 5})
      for (const auto& place : {std::pair{index_range{20, 431}, std::size_t{20}},
                                {index_range{20, 431}, 7},
                                {index_range{0, 500}, 0},
                                {index_range{140, 150}, 140},
                                {index_range{137, 138}, 101},
                                {index_range{50, 50}, 50}}) {
        const auto range = place.first;
        const auto origin = place.second;
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(range.begin);
        CAPTURE(origin);
        const auto g = random_gradients<T>(n, cut.total(), n);
        // Copies that hold nothing outside the window, so that a sanitizer sees a read beyond it.
        std::vector<std::vector<T>> held;
        for (const auto& vector : g)
          held.emplace_back(vector.begin() + static_cast<std::ptrdiff_t>(origin),
                            vector.begin() + static_cast<std::ptrdiff_t>(range.end));
        const slice window{cut, range, origin};
        const auto gram = measure(serial_space(set), window, pointers(held));
        for (std::size_t k = 0; k < cut.size(); ++k) {
          const auto begin = std::clamp(cut.offset(k), range.begin, range.end);
          const auto end = std::clamp(cut.offset(k) + cut.length(k), range.begin, range.end);
          check_gram(gram.data() + k * packed_size(n), g, {begin, end}, set);  // 0 where it is empty
        }
      }
}

TEST_CASE_TEMPLATE("the same bits wherever the vectors lie", T, ADASUM_TEST_FORMATS) {
  // Too short to be read in whole cache lines; a block of those and a rest; and several, without a rest or with one.
  for (const std::size_t length : sizes{1203, 2113, 8192, 9001})
    for (const auto set : every_instruction_set())
      for (const std::size_t n : sizes{1, 2, 6}) {
        CAPTURE(length);
        CAPTURE(to_string(set));
        CAPTURE(n);
        const auto g = random_gradients<T>(n, length, n);
        const auto expected = measure(serial_space(set), whole(segments{length}), pointers(g));
        for (std::size_t offset = 1; offset <= 17; ++offset) {
          auto moved = g;
          for (auto& vector : moved) vector.insert(vector.begin(), offset, quiet_nan<T>());
          const auto gram = measure(serial_space(set), whole(segments{length}), pointers(moved, offset));
          REQUIRE(std::memcmp(gram.data(), expected.data(), gram.size() * sizeof(double)) == 0);
          if (n != 2) continue;  // one vector moved, and the other not
          const auto mixed = measure(serial_space(set), whole(segments{length}),
                                     std::vector<const T*>{moved[0].data() + offset, g[1].data()});
          REQUIRE(std::memcmp(mixed.data(), expected.data(), mixed.size() * sizeof(double)) == 0);
        }
      }
}

TEST_CASE_TEMPLATE("long vectors: float lanes are emptied before they drift", T, float, double) {
  // Squares of nearly equal numbers round alike, so a long sum in float drifts by many times the documented bound.
  constexpr std::size_t length = 1u << 20;
  std::vector<std::vector<T>> g(2, std::vector<T>(length));
  for (std::size_t x = 0; x < length; ++x) {
    g[0][x] = static_cast<T>(0.7);
    g[1][x] = static_cast<T>(x % 2 == 0 ? 0.9 : 0.9001);
  }
  for (const auto set : every_instruction_set()) {
    CAPTURE(to_string(set));
    check_gram(measure(serial_space(set), whole(segments{length}), pointers(g)).data(), g, {0, length}, set);
  }
}

TEST_CASE_TEMPLATE("a square is zero only where the vector is", T, ADASUM_TEST_FORMATS) {
  // A long double may end where double does, as ppc64le's.
  const auto smallest =
      from_double<T>(std::max(static_cast<double>(2 * rounding_to<T>.tiny), std::numeric_limits<double>::denorm_min()));
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{1, 2, 5})
      for (const std::size_t where : sizes{0, 5, 63, 64, 130}) {
        std::vector<std::vector<T>> g(n, std::vector<T>(131, from_double<T>(-0.0)));
        g[0][where] = smallest;
        const auto gram = measure(serial_space(set), whole(segments{131}), pointers(g));
        REQUIRE(gram[0] > 0);
        for (std::size_t i = 1; i < n; ++i) REQUIRE(gram[packed_index(i, i)] == 0);
      }
}

}  // namespace test_of_exec_serial_measure
