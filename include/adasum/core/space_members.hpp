// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "concepts.hpp"
#include "scalar.hpp"
#include "segments.hpp"

/// What stands for an execution space in some calls: a space that it offers (concepts.hpp); for the library's own spaces of
/// the host, what makes better use of the caches; and how calls leave a space.
namespace adasum::detail {

// ── the library's own spaces ──

/// How many bytes of gradients one local round of measure and mix processes if there are several segments, so that what has
/// been measured is in the cache when it is mixed. 0: a round processes all of them. The library's own spaces say so where they
/// are defined. A class that derives from one of them may have replaced some of it, and does without.
template <class Space>
inline constexpr std::size_t own_round_bytes = 0;

/// A round. Such a space can be told how many bytes all vectors have together: where that is more than the caches hold, it
/// works past them.
/// @param bytes  of these; 0 if nobody knows
template <class Space, scalar T>
void measure_round(const Space& space, const slice& window, std::span<const T* const> vectors, double* gram,
                   std::size_t bytes) {
  if constexpr (own_round_bytes<Space> != 0 && requires { space.measure(window, vectors, gram, bytes); })
    if (bytes > 0) return space.measure(window, vectors, gram, bytes);
  space.measure(window, vectors, gram);
}
template <class Space, scalar T>
void mix_round(const Space& space, const slice& window, std::span<const T* const> vectors, const double* weights,
               T* out, std::size_t bytes) {
  if constexpr (own_round_bytes<Space> != 0 && requires { space.mix(window, vectors, weights, out, bytes); })
    space.mix(window, vectors, weights, out, bytes);
  else
    space.mix(window, vectors, weights, out);
}

/// The most segments of a round, unless it is the only one: short segments share the cost of a round.
inline constexpr std::size_t most_in_round = 64;

/// How many segments the round has that begins with segment `first`: as many as fit, at least one.
/// @param bytes  of all vectors together, for each element
inline std::size_t segments_of_round(segments_view segments, std::size_t first, std::size_t bytes,
                                     std::size_t round_bytes) {
  const std::size_t last = std::min(segments.size(), first + most_in_round);
  const std::size_t* const offsets = segments.offsets().data();
  std::size_t end = first + 1;
  while (end < last && bytes * (offsets[end + 1] - offsets[first]) <= round_bytes) ++end;
  return end - first;
}

/// A round of at most two vectors. Some of the library's own spaces have kernels for these, with the same
/// results; what derives from them does without.
template <class Space>
struct own_pairs {
  template <scalar T>
  static void measure(const Space& space, const slice& window, std::span<const T* const> vectors, double* gram,
                      std::size_t bytes) {
    measure_round(space, window, vectors, gram, bytes);
  }
  template <scalar T>
  static void mix(const Space& space, const slice& window, std::span<const T* const> vectors, const double* weights,
                  T* out, std::size_t bytes) {
    mix_round(space, window, vectors, weights, out, bytes);
  }
};

// ── spaces that stand for others ──

/// Whether vectors of T are combined in double where their inner products do not decide.
template <class Space, class T>
inline constexpr bool recombines_in_double = std::same_as<T, double> || requires(const Space& space) {
  requires execution_space<std::remove_cvref_t<decltype(for_recombining(space))>, double>;
};

/// The space for copies of vectors of T that are combined vector by vector.
template <scalar T, class Space>
decltype(auto) space_of_copies(const Space& space) {
  if constexpr (recombines_in_double<Space, T> && !std::same_as<T, double>)
    return for_recombining(space);
  else
    return (space);
}

// ── leaving a space ──

/// Where an exception leaves a call, waits until all that the space has begun has ended: before memory is freed in which it
/// works, and before the caller has its vectors back.
template <class Space>
class fence_on_failure {
 public:
  /// To be made after that memory, so that it is destroyed before. @param space  lives as long
  explicit fence_on_failure(const Space& space) : space_(space) {}
  fence_on_failure(const fence_on_failure&) = delete;
  fence_on_failure& operator=(const fence_on_failure&) = delete;
  ~fence_on_failure() {
    if (is_dismissed_) return;
    try {
      space_.fence();
    } catch (...) {  // the device has failed: nothing runs there any more
    }
  }

  /// Nothing has failed.
  void dismiss() { is_dismissed_ = true; }

 private:
  const Space& space_;
  bool is_dismissed_ = false;
};

}  // namespace adasum::detail
