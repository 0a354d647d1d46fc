// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check_execution_space looks at measure_in_double and mix_in_double of spaces that have them, and finds planted faults.
#include <doctest/doctest.h>

#include <adasum/exec/serial.hpp>
#include <adasum/testing/execution_space.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/refusal.hpp"

namespace test_of_testing_mix_in_double_check {

using namespace adasum;
using namespace adasum::test;

namespace {

enum class fault {
  none,
  // measure_in_double
  as_measure,     // floats, of one or two vectors
  edge_missed,    // the first element of each segment in a window is left out
  underflow,      // a small square is zero
  of_sums,        // doubles are measured as floats
  moved_differs,  // another result for other addresses
  // mix_in_double
  weights_ignored,
  first_weights,  // those of the first segment serve all
  last_ignored,   // of 9 vectors, the last one is left out
  weight_zero_read,
  float_weights,
  float_elements,
  float_sums,
  writes_all,     // also to what lies before the window
  weights_later,  // the weights are read in fence()
  mix_by_address,
};

/// Which mix_in_double has the fault.
enum class direction { to_double, from_double, within };

/// serial_space, with plain loops in double that have a fault.
class faulty_space : public serial_space {
 public:
  static constexpr std::string_view name = "faulty";
  explicit faulty_space(fault which, direction towards = direction::from_double) : fault_(which), direction_(towards) {}
  friend bool operator==(const faulty_space& a, const faulty_space& b) { return a.fault_ == b.fault_; }

  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    if (fault_ == fault::as_measure) return measure(window, vectors, gram);
    const bool moved = reinterpret_cast<std::uintptr_t>(vectors[0]) % 64 != 0;
    for (std::size_t k = 0; k < window.segments.size(); ++k) {
      auto range = window.local(k);
      if (fault_ == fault::edge_missed && !range.empty()) ++range.begin;
      for (std::size_t i = 0; i < vectors.size(); ++i)
        for (std::size_t j = 0; j <= i; ++j) {
          double sum = 0;
          bool zero = true;
          for (auto x = range.begin; x < range.end; ++x) {
            double a = detail::to_double(vectors[i][x]);
            if (fault_ == fault::of_sums && std::is_same_v<T, double>) a = static_cast<double>(static_cast<float>(a));
            sum += a * detail::to_double(vectors[j][x]);
            zero = zero && a == 0;
          }
          if (i == j && sum == 0 && !zero && fault_ != fault::underflow)
            sum = std::numeric_limits<double>::denorm_min();
          if (fault_ == fault::moved_differs && moved) sum *= 1 + 0x1p-52;
          *gram++ = sum;
        }
    }
  }

  template <scalar From, scalar To>
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    constexpr auto here = std::is_same_v<To, double>     ? direction::to_double
                          : std::is_same_v<From, double> ? direction::from_double
                                                         : direction::within;
    const auto which = here == direction_ ? fault_ : fault::none;
    if (which == fault::weights_later)
      waiting_ = [which, window, inputs = std::vector<const From*>(vectors.begin(), vectors.end()), weights, out] {
        mix_now<From>(which, window, inputs, weights, out);
      };
    else
      mix_now(which, window, vectors, weights, out);
  }

  void fence() const {
    if (waiting_) std::exchange(waiting_, nullptr)();
  }

 private:
  template <scalar From, scalar To>
  static void mix_now(fault which, const slice& window, std::span<const From* const> vectors, const double* weights,
                      To* out) {
    const auto n = vectors.size();
    const bool moved = reinterpret_cast<std::uintptr_t>(vectors[0]) % 64 != 0;
    const auto narrow = [](double x) { return static_cast<double>(static_cast<float>(x)); };
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
          double weight = weights[(which == fault::first_weights ? 0 : k * n) + i];
          double element = detail::to_double(vectors[i][x]);
          if (weight == 0 && which != fault::weight_zero_read) continue;
          if (which == fault::weights_ignored) weight = 1;
          if (which == fault::last_ignored && i == 8) weight = 0;
          if (which == fault::float_weights) weight = narrow(weight);
          if (which == fault::float_elements) element = narrow(element);
          sum += weight * element;
          if (which == fault::float_sums) sum = narrow(sum);
        }
        if (which == fault::mix_by_address && moved)
          sum *= 1 + (std::is_same_v<To, double> ? 2 : 0.9) * unit_roundoff(format_of<To>);
        out[x] = detail::from_double<To>(sum);
      }
    if (which == fault::writes_all)
      for (std::size_t x = 0; x < window.range.begin - window.origin; ++x) out[x] = detail::from_double<To>(0);
  }

  fault fault_;
  direction direction_;
  mutable std::function<void()> waiting_;
};

template <class T>
void check_found(fault which, const std::string& mentions) {
  CAPTURE(static_cast<int>(which));
  check_refused([&] { check_execution_space<T>(faulty_space(which)); }, mentions);
}

}  // namespace

TEST_CASE_TEMPLATE("loops that are right", T, ADASUM_TEST_FORMATS) {
  CHECK_NOTHROW(check_execution_space<T>(faulty_space(fault::none)));
}

TEST_CASE_TEMPLATE("faults of measure_in_double", T, float, double) {
  check_found<T>(fault::edge_missed, "measure_in_double: entry");
  check_found<T>(fault::moved_differs, "measure_in_double: the same vectors at other addresses");
}

TEST_CASE("faults of measure_in_double that only some elements show") {
  check_found<float>(fault::as_measure, "measure_in_double: entry (0, 0) of segment 0");
  check_found<float>(fault::of_sums, "measure_in_double: entry (0, 0) of segment 0");
  check_found<float>(fault::underflow, "measure_in_double: the square of a vector that is not zero is zero");
}

namespace {

/// What check_execution_space does with mix_in_double from one type to another, without all that comes before.
template <class From, class To>
void check_mixing(const faulty_space& space) {
  detail::mix_check<faulty_space, From, To, true>(space).run();
}

}  // namespace

TEST_CASE_TEMPLATE("faults of mix_in_double, in every direction", T, ADASUM_TEST_FORMATS) {
  const std::string narrow(to_string(format_of<T>)), wide(to_string(number_format::binary64));
  for (const auto towards : {direction::to_double, direction::from_double, direction::within}) {
    if (std::is_same_v<T, double> && towards != direction::to_double) continue;  // all are one
    const bool to_double = towards == direction::to_double, from_double = towards == direction::from_double;
    const std::string call =
        "mix_in_double, from " + (from_double ? wide : narrow) + " to " + (to_double ? wide : narrow) + ": ";
    const auto check = [&](fault which) {
      const faulty_space space(which, towards);
      if (to_double) return check_mixing<T, double>(space);
      from_double ? check_mixing<double, T>(space) : check_mixing<T, T>(space);
    };
    for (const auto& planted :
         {std::pair{fault::weights_ignored, "an element is"}, std::pair{fault::first_weights, "an element is"},
          std::pair{fault::last_ignored, "(9 vectors)"}, std::pair{fault::float_weights, "an element is"},
          std::pair{fault::float_sums, "an element is"}, std::pair{fault::weights_later, "an element is"},
          std::pair{fault::weight_zero_read, "NaN in a vector of weight 0"},
          std::pair{fault::writes_all, "it writes to an element outside the window"},
          std::pair{fault::mix_by_address, "the same vectors at other addresses"}}) {
      const auto which = planted.first;
      CAPTURE(static_cast<int>(which));
      CAPTURE(call);
      check_refused([&] { check(which); }, call, planted.second);
    }
    if (from_double || std::is_same_v<T, double>) check_refused([&] { check(fault::float_elements); }, call);
    // The whole check has that part.
    const faulty_space one(fault::weights_ignored, towards);
    check_refused([&] { check_execution_space<T>(one); }, call, "an element is");
  }
}

}  // namespace test_of_testing_mix_in_double_check
