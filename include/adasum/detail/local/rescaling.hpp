// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "../../core/float_bits.hpp"
#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/weigh.hpp"

namespace adasum::detail {

/// By which powers of two some vectors are multiplied, so that their squares and the result's stay in range.
/// Pure: told the vectors' squares, says what to multiply by.
///
/// Vectors whose squares leave double's range, or whose terms might leave that of float, are multiplied alike, so that the
/// middle between the largest norm and the smallest comes near 1: then squares of norms at ratios of up to 2^1000 are in
/// range, and a rule that chooses a small vector sees it as small as it is. Smaller ones lose digits, and count as zero
/// where even their squares vanish.
///
/// Where of so small a vector only the direction counts, as under pairwise rules, the largest norm comes near 1, and no
/// other is left below 2^-lift: such a vector is enlarged, which changes the result by less than its rounding where lift
/// is 100.
class rescaling {
 public:
  /// How far vectors of some element type may be multiplied. As exponents of two:
  struct number_range {
    double largest_square;  ///< beyond which a vector is multiplied
    int first_step;         ///< by which it is brought near 1 at first, and small ones enlarged
    int largest_exponent;   ///< of a norm: its elements are in range, and sums of a million squares
  };
  template <scalar T>
  static constexpr number_range range_of =
      format_of<T> == number_format::binary64 ? number_range{largest_mixed_square<T>, 600, 500}
                                              : number_range{largest_mixed_square<T>, 128, 125};

  rescaling(std::size_t n, const number_range& range)
      : norms(n), by(n), exponent(n), wanted(n), magnitude(n), range_(range) {}

  /// First: brings squares that leave the range back into it. @return whether any vector is to be multiplied, by
  /// 2^by(i)
  bool begin(gram_view gram) {
    bool any = false;
    for (std::size_t i = 0; i < exponent.size(); ++i) {
      const double square = gram(i, i);
      const bool is_small = square < smallest_safe_square && square > 0;
      // NaN hides whether other parts of the vector are long.
      const bool is_large = square > range_.largest_square || is_nan(square);
      exponent[i] = is_large ? -range_.first_step : is_small ? range_.first_step : 0;
      wanted[i] = 0;
      any |= exponent[i] != 0;
    }
    by = exponent;
    return any;
  }

  /// Then: the norms of the vectors as they were. @return whether all of them are finite
  bool note_norms(gram_view gram) {
    bool finite = true;
    largest = std::numeric_limits<int>::min();
    smallest = std::numeric_limits<int>::max();
    for (std::size_t i = 0; i < norms.size(); ++i) {
      const double square = gram(i, i);
      norms[i] = std::ldexp(std::sqrt(square), -exponent[i]);
      finite = finite && is_finite(square);
      if (!finite || square == 0) continue;
      magnitude[i] = std::ilogb(std::sqrt(square)) - exponent[i];
      largest = std::max(largest, magnitude[i]);
      smallest = std::min(smallest, magnitude[i]);
    }
    return finite;
  }

  /// Last: a common scale; by(i) is what is left to multiply by.
  void find_common(gram_view gram, std::optional<int> lift) {
    common = -largest + (lift ? 0 : std::min((largest - smallest) / 2, range_.largest_exponent));
    for (std::size_t i = 0; i < norms.size(); ++i) {
      by[i] = 0;
      if (gram(i, i) == 0) continue;
      wanted[i] = common + (lift ? std::max(0, largest - magnitude[i] - *lift) : 0);
      by[i] = wanted[i] - exponent[i];
    }
  }

  std::vector<double> norms;  ///< of the vectors as they were
  std::vector<int> by;        ///< what to multiply by now, as exponents of two
  std::vector<int> exponent;  ///< what they were multiplied by first
  std::vector<int> wanted;    ///< what they are multiplied by in the end
  std::vector<int> magnitude;
  int common = 0;                 ///< what all of them are multiplied by in the end, at least
  int largest = 0, smallest = 0;  ///< the binary exponents of the norms

 private:
  number_range range_;
};

}  // namespace adasum::detail
