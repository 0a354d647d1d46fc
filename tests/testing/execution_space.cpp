// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check_execution_space takes spaces that are right, and finds planted faults.
#include <doctest/doctest.h>

#include <adasum/exec/serial.hpp>
#include <adasum/testing.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/complete_types.hpp"
#include "support/doctest_scalars.hpp"
#include "support/every_instruction_set.hpp"
#include "support/refusal.hpp"

namespace test_of_testing_execution_space {

using namespace adasum;
using namespace adasum::test;

namespace {

enum class fault {
  none,
  float_sums,        // long sums drift
  underflow,         // a small square is zero
  nonfinite_hidden,  // Inf and NaN are left out
  empty_unwritten,   // segments without elements keep what was there
  edge_missed,       // the first element of each segment in a window is left out
  by_address,        // another order of adding for other addresses
  by_copy,           // copies compute something else
  told_bytes,        // the measure that is told the bytes is wrong
  weight_zero_read,
  writes_all,     // mix writes to what lies before the window
  clears_out,     // mix begins with out = 0, in place too
  float_weights,  // weights are rounded to float
  weights_later,  // the weights are read in fence()
  mix_by_address,
  copies_less,
  copies_more,
  truncates,  // float to 16 bits
  saturates,  // there, what overflows is the largest number
  denies,     // can_reach
  pairs,      // what is for pairs alone
};

/// Plain loops with a fault.
class faulty_space {
 public:
  static constexpr std::string_view name = "faulty";
  explicit faulty_space(fault which) : fault_(which) {}
  faulty_space(const faulty_space& other) : fault_(other.fault_), is_copy_(true) {}
  faulty_space& operator=(const faulty_space&) = default;
  friend bool operator==(const faulty_space& a, const faulty_space& b) { return a.fault_ == b.fault_; }

  template <scalar T>
  auto allocate(std::size_t count) const {
    return serial_space{}.allocate<T>(count);
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    for (std::size_t k = 0; k < window.segments.size(); ++k) {
      auto range = window.local(k);
      if (fault_ == fault::empty_unwritten && range.empty()) continue;
      if (fault_ == fault::edge_missed && !range.empty()) ++range.begin;
      for (std::size_t i = 0; i < vectors.size(); ++i)
        for (std::size_t j = 0; j <= i; ++j)
          gram[k * packed_size(vectors.size()) + packed_index(i, j)] = dot(vectors[i], vectors[j], range, i == j);
    }
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram, std::size_t) const {
    measure(window, vectors, gram);
    if (fault_ == fault::told_bytes) gram[0] += 1;
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    if (fault_ == fault::weights_later) {
      waiting_ = [this, window, inputs = std::vector<const T*>(vectors.begin(), vectors.end()), weights, out] {
        mix_now<T>(window, inputs, weights, out);
      };
      return;
    }
    if (fault_ == fault::clears_out)
      for (auto x = window.range.begin; x < window.range.end; ++x) out[x - window.origin] = detail::from_double<T>(0);
    mix_now(window, vectors, weights, out);
    if (fault_ == fault::writes_all)
      for (std::size_t x = 0; x < window.range.begin - window.origin; ++x) out[x] = detail::from_double<T>(0);
  }
  template <scalar From, scalar To>
  void copy(const From* from, To* to, std::size_t count) const {
    if (fault_ == fault::copies_less && count > 5) --count;
    if (fault_ == fault::copies_more) to[count] = detail::from_double<To>(0);
    serial_space{}.copy(from, to, count);
    if constexpr (sizeof(To) < sizeof(From))
      for (std::size_t i = 0; i < count; ++i) {
        const double value = detail::to_double(from[i]);
        if (fault_ == fault::truncates) to[i] = detail::from_double<To>(value * (1 - 0x1p-9));
        if (fault_ == fault::saturates && format_of<To> == number_format::binary16 && value >= 65520)
          to[i] = detail::from_double<To>(65504);
      }
  }
  void fence() const {
    if (waiting_) std::exchange(waiting_, nullptr)();
  }
  bool can_reach(const void*) const { return fault_ != fault::denies; }
  template <scalar T>
  void measure_pairs(const slice& window, std::span<const T* const> vectors, double* gram) const {
    measure(window, vectors, gram);
    if (fault_ == fault::pairs) gram[0] += 1;
  }

 private:
  template <class T>
  double dot(const T* a, const T* b, index_range range, bool square) const {
    double sum = 0;
    float narrow = 0;
    bool zero = true;
    const auto at = [&](std::size_t x) {
      const double u = detail::to_double(a[x]), v = detail::to_double(b[x]);
      if (fault_ == fault::nonfinite_hidden && !std::isfinite(u * v)) return;
      sum += u * v;
      narrow += static_cast<float>(u * v);
      zero = zero && u == 0;
    };
    if (fault_ == fault::by_address && reinterpret_cast<std::uintptr_t>(a) % 64 != 0)
      for (auto x = range.end; x > range.begin; --x) at(x - 1);
    else
      for (auto x = range.begin; x < range.end; ++x) at(x);
    if (fault_ == fault::float_sums) return static_cast<double>(narrow);
    if (fault_ == fault::by_copy && is_copy_) sum *= 1 + 1e-15;
    if (square && sum == 0 && !zero && fault_ != fault::underflow) return std::numeric_limits<double>::denorm_min();
    return sum;
  }

  static double as_float(double weight) {
    constexpr double largest = std::numeric_limits<float>::max();
    return std::abs(weight) > largest ? std::copysign(std::numeric_limits<double>::infinity(), weight)
                                      : static_cast<double>(static_cast<float>(weight));
  }

  template <class T>
  void mix_now(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    const bool odd = fault_ == fault::mix_by_address && reinterpret_cast<std::uintptr_t>(vectors[0]) % 64 != 0;
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
        double sum = 0;
        for (std::size_t i = 0; i < vectors.size(); ++i)
          if (const double weight = weights[k * vectors.size() + i]; weight != 0 || fault_ == fault::weight_zero_read)
            sum += (fault_ == fault::float_weights ? as_float(weight) : weight) * detail::to_double(vectors[i][x]);
        out[x] = detail::from_double<T>(odd ? sum * (1 + 2 * unit_roundoff(format_of<T>)) : sum);
      }
  }

  fault fault_;
  bool is_copy_ = false;
  mutable std::function<void()> waiting_;
};

}  // namespace
}  // namespace test_of_testing_execution_space

/// As the library's own spaces are told the number of bytes, and have kernels for pairs.
template <>
inline constexpr std::size_t adasum::detail::own_round_bytes<test_of_testing_execution_space::faulty_space> = 1000;
template <>
struct adasum::detail::own_pairs<test_of_testing_execution_space::faulty_space> {
  template <scalar T>
  static void measure(const test_of_testing_execution_space::faulty_space& space, const slice& window,
                      std::span<const T* const> vectors, double* gram, std::size_t) {
    space.measure_pairs(window, vectors, gram);
  }
  template <scalar T>
  static void mix(const test_of_testing_execution_space::faulty_space& space, const slice& window,
                  std::span<const T* const> vectors, const double* weights, T* out, std::size_t) {
    space.mix(window, vectors, weights, out);
  }
};

namespace test_of_testing_execution_space {
namespace {

template <class T>
void check_found(fault which, const std::string& mentions) {
  CAPTURE(static_cast<int>(which));
  check_refused([&] { check_execution_space<T>(faulty_space(which)); }, mentions);
}

}  // namespace

TEST_CASE_TEMPLATE("serial_space, by every instruction set", T, ADASUM_TEST_FORMATS) {
  for (const auto set : every_instruction_set()) CHECK_NOTHROW(check_execution_space<T>(serial_space(set)));
}

TEST_CASE("spaces of users that are right") {
  CHECK_NOTHROW(check_execution_space<float>(minimal_space<float>(1)));
  CHECK_NOTHROW(check_execution_space<double>(minimal_space<double>(1)));
  const question_counts asked;
  CHECK_NOTHROW(check_execution_space<float>(complete_space(asked)));
  for (const auto what : {asked_for::copy_to_16_bits, asked_for::copy_from_16_bits, asked_for::can_reach,
                          asked_for::measure_in_double, asked_for::mix_in_double}) {
    CAPTURE(static_cast<int>(what));
    CHECK(asked.of(what) > 0);
  }
  using names = std::vector<std::string>;
  CHECK(check_execution_space<float>(minimal_space<float>(1)) == names{});
  CHECK(check_execution_space<float>(complete_space(asked)) ==
        names{"16-bit copies", "arithmetic in double", "sums in double", "for_recombining", "can_reach"});
  CHECK_NOTHROW(check_execution_space<float>(faulty_space(fault::none)));
  CHECK_NOTHROW(check_execution_space<double>(faulty_space(fault::none)));
}

TEST_CASE_TEMPLATE("faults of any element type", T, float, double) {
  check_found<T>(fault::nonfinite_hidden, "measure: the square of a vector that holds Inf or NaN is finite");
  check_found<T>(fault::empty_unwritten, "measure: entry (0, 0) of segment 1");
  check_found<T>(fault::edge_missed, "measure: entry");
  check_found<T>(fault::by_address, "measure: the same vectors at other addresses");
  check_found<T>(fault::by_copy, "measure: a copy of the space");
  check_found<T>(fault::told_bytes, "told that they are part of more");
  check_found<T>(fault::weight_zero_read, "mix: NaN in a vector of weight 0");
  check_found<T>(fault::writes_all, "mix: it writes to an element outside the window");
  check_found<T>(fault::clears_out, "mix: the result differs where it is written to vector 0");
  check_found<T>(fault::weights_later, "mix: an element is");
  check_found<T>(fault::mix_by_address, "mix: the same vectors at other addresses");
  check_found<T>(fault::copies_less, "copy: ");
  check_found<T>(fault::copies_more, "copy: it writes past the end");
  check_found<T>(fault::denies, "can_reach");
  check_found<T>(fault::pairs, "measure: the kernels for pairs");
}

TEST_CASE("faults of one element type") {
  check_found<float>(fault::float_sums, "measure: entry (0, 0) of segment 0");
  check_found<double>(fault::underflow, "measure: the square of a vector that is not zero is zero");
  check_found<float>(fault::truncates, "copy: ");
  check_found<float>(fault::saturates, "copy: 65520 becomes 65504 (from float to half)");
  check_found<float>(fault::float_weights, "mix: an element is ");
}

}  // namespace test_of_testing_execution_space
