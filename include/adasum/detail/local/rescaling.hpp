// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "../../core/float_bits.hpp"
#include "../../core/gram.hpp"
#include "../../core/weigh.hpp"

namespace adasum::detail {

/// By which powers of two some vectors are multiplied, so that their squares and the result's stay in double's range.
/// Pure: told the vectors' squares, says what to multiply by.
///
/// Vectors whose squares leave double's range are multiplied so that the largest norm comes near 1 and none is below
/// 2^-lift. Such a smaller one is enlarged, which changes the result by less than its rounding where lift is 100: of so
/// small a vector, only the direction counts. Rules that may choose a small vector give a lift that no vector needs, and
/// see it as small as it is; where even its square vanishes, as zero.
class rescaling {
 public:
  explicit rescaling(std::size_t n) : norms(n), by(n), exponent(n), wanted(n), magnitude(n) {}

  /// First: brings squares that leave double's range back into it. @return whether any vector is to be multiplied, by
  /// 2^by(i)
  bool begin(gram_view gram) {
    bool any = false;
    for (std::size_t i = 0; i < exponent.size(); ++i) {
      const double square = gram(i, i);
      exponent[i] = square > largest_safe_square ? -600 : square < smallest_safe_square && square > 0 ? 600 : 0;
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
    for (std::size_t i = 0; i < norms.size(); ++i) {
      const double square = gram(i, i);
      norms[i] = std::ldexp(std::sqrt(square), -exponent[i]);
      finite = finite && is_finite(square);
      if (!finite || square == 0) continue;
      magnitude[i] = std::ilogb(std::sqrt(square)) - exponent[i];
      largest = std::max(largest, magnitude[i]);
    }
    return finite;
  }

  /// Last: a common scale; by(i) is what is left to multiply by.
  void find_common(gram_view gram, int lift) {
    for (std::size_t i = 0; i < norms.size(); ++i) {
      by[i] = 0;
      if (gram(i, i) == 0) continue;
      wanted[i] = -largest + std::max(0, largest - magnitude[i] - lift);
      by[i] = wanted[i] - exponent[i];
    }
  }

  std::vector<double> norms;  ///< of the vectors as they were
  std::vector<int> by;        ///< what to multiply by now, as exponents of two
  std::vector<int> exponent;  ///< what they were multiplied by first
  std::vector<int> wanted;    ///< what they are multiplied by in the end
  std::vector<int> magnitude;
  int largest = 0;  ///< the binary exponent of the largest norm
};

}  // namespace adasum::detail
