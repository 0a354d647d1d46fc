// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "space.hpp"

namespace adasum {
namespace detail {

/// Doubles, and copies of narrower elements in double: what segments are combined in that inner products of their own
/// elements cannot decide. Rare, so these are plain loops: kernels for doubles would take a program whose gradients are
/// floats half as long again to compile.
class serial_double_space {
 public:
  static constexpr std::string_view name = "serial";

  explicit serial_double_space(const serial_space& space) : space_(space) {}
  friend bool operator==(const serial_double_space&, const serial_double_space&) = default;

  template <std::same_as<double> T>
  auto allocate(std::size_t count) const {
    return space_.template allocate<T>(count);
  }

  void measure(const slice& window, std::span<const double* const> vectors, double* gram) const;
  void mix(const slice& window, std::span<const double* const> vectors, const double* weights, double* out) const;

  /// Rounded to nearest even; from and to a 16-bit type by way of float, so that ties are rounded twice.
  template <scalar From, scalar To>
  void copy(const From* from, To* to, std::size_t count) const {
    if constexpr (sizeof(From) != 2 && sizeof(To) != 2) {
      for (std::size_t x = 0; x < count; ++x) to[x] = static_cast<To>(from[x]);
    } else {
      constexpr std::size_t at_once = 256;
      float some[at_once];
      for (std::size_t x = 0, length = 0; x < count; x += length) {
        length = count - x < at_once ? count - x : at_once;
        if constexpr (sizeof(From) == 2) {
          space_.copy(from + x, static_cast<float*>(some), length);
          copy(static_cast<const float*>(some), to + x, length);
        } else {
          copy(from + x, static_cast<float*>(some), length);
          space_.copy(static_cast<const float*>(some), to + x, length);
        }
      }
    }
  }
  void fence() const {}

 private:
  serial_space space_;
};

}  // namespace detail

/// @cond internal
/// See core/concepts.hpp. A class derived from serial_space may have replaced some of it, so it has no such space.
template <std::same_as<serial_space> Space>
detail::serial_double_space for_recombining(const Space& space) {
  return detail::serial_double_space(space);
}
/// @endcond

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include "blocks.hpp"

namespace adasum::detail {

/// a·b over the elements of a segment. Several sums, for accuracy and so that an addition need not wait for the last.
inline double inner_product(const double* a, const double* b, index_range piece) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  auto x = piece.begin;
  for (; x + lanes <= piece.end; x += lanes)
    for (std::size_t l = 0; l < lanes; ++l) sums[l] += a[x + l] * b[x + l];
  for (; x < piece.end; ++x) sums[0] += a[x] * b[x];
  double sum = 0;
  for (const double one : sums) sum += one;
  if (a == b && is_zero(sum))
    for (x = piece.begin; x < piece.end; ++x)
      if (!is_zero(a[x])) return serial::underflowed_square;
  return sum;
}

ADASUM_INLINE void serial_double_space::measure(const slice& window, std::span<const double* const> vectors,
                                                double* gram) const {
  const auto n = vectors.size();
  for (std::size_t k = 0; k < window.segments.size(); ++k) {
    const auto piece = window.local(k);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) *gram++ = inner_product(vectors[i], vectors[j], piece);
  }
}

ADASUM_INLINE void serial_double_space::mix(const slice& window, std::span<const double* const> vectors,
                                            const double* weights, double* out) const {
  const auto n = vectors.size();
  for (std::size_t k = 0; k < window.segments.size(); ++k, weights += n) {
    const auto piece = window.local(k);
    for (auto x = piece.begin; x < piece.end; ++x) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i)
        if (!is_zero(weights[i])) sum += weights[i] * vectors[i][x];
      out[x] = sum;
    }
  }
}

}  // namespace adasum::detail
#endif
