// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// adasum_pair of what inner products cannot decide, against combine, which goes another way: the same bits.
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/doctest_scalars.hpp"

namespace test_of_detail_numerics_combine_pair {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Gradients of all sizes that are opposed, nearly or exactly; some with Inf or NaN, or zero.
template <class T>
class opposed_pairs {
 public:
  /// @param largest  of the binary exponents of the gradients
  explicit opposed_pairs(int largest) : exponent_(-largest, largest) {}

  std::vector<std::vector<T>> next() {
    const std::size_t length = 1 + below(below(3) == 0 ? 3 : 60);
    const double first = std::ldexp(1.0, exponent_(random_));
    const double last = below(2) == 0 ? first : std::ldexp(1.0, exponent_(random_));
    const double tilt = below(3) == 0 ? 0 : std::ldexp(1.0, -static_cast<int>(below(60)));
    std::vector<T> a, b;
    for (std::size_t x = 0; x < length; ++x) {
      const double value = normal_(random_);
      a.push_back(from_double<T>(first * value));
      b.push_back(from_double<T>(last * (tilt * normal_(random_) - value)));
    }
    if (below(20) == 0) b[below(length)] = from_double<T>(std::numeric_limits<double>::infinity());
    if (below(30) == 0) a[below(length)] = from_double<T>(std::numeric_limits<double>::quiet_NaN());
    if (below(15) == 0) a.assign(length, from_double<T>(0));
    return {a, b};
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  std::mt19937 random_{7};
  std::normal_distribution<double> normal_;
  std::uniform_int_distribution<int> exponent_;
};

/// For which the library knows neither kernels for pairs nor a space for copies in double.
struct derived_space : serial_space {
  friend bool operator==(const derived_space&, const derived_space&) = default;
};

template <class T, class Space>
void check_same_bits(const Space& space, int largest_exponent) {
  opposed_pairs<T> pairs(largest_exponent);
  std::size_t recombined = 0, different = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto gradients = pairs.next();
    std::vector<T> out(gradients[0].size()), expected(out.size());
    adasum_pair(space, gradients[0], gradients[1], out);
    recombined += combine(space, gradients, expected).recombined_segments();
    different += std::memcmp(out.data(), expected.data(), out.size() * sizeof(T)) != 0;
  }
  CHECK(different == 0);
  CHECK(recombined > 100);
}

}  // namespace

TEST_CASE_TEMPLATE("the bits of combine", T, ADASUM_TEST_SCALARS) {
  const int largest = format_of<T> == number_format::binary64   ? 1060
                      : format_of<T> == number_format::binary16 ? 14
                                                                : 130;
  check_same_bits<T>(serial_space{}, largest);
  check_same_bits<T>(serial_space{}, 3);
  check_same_bits<T>(derived_space{}, largest);
}

}  // namespace test_of_detail_numerics_combine_pair
