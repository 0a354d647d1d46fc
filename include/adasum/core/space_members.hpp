// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

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

/// How a space works from caches: not at all.
struct no_caches {
  /// How many bytes of gradients one local round of measure and mix processes if there are several segments, so that what has
  /// been measured is in the cache when it is mixed. 0: a round processes all of them.
  static constexpr std::size_t round_bytes = 0;
  /// @param bytes  of all vectors together, of which the slice is one round; 0 if nobody knows, here and below
  template <class Space, scalar T>
  static void measure(const Space& space, const slice& window, std::span<const T* const> vectors, double* gram,
                      std::size_t) {
    space.measure(window, vectors, gram);
  }
  template <class Space, scalar T>
  static void mix(const Space& space, const slice& window, std::span<const T* const> vectors, const double* weights,
                  T* out, std::size_t) {
    space.mix(window, vectors, weights, out);
  }
};

/// Its member measure can be told the number of bytes.
struct measures_from_caches : no_caches {
  template <class Space, scalar T>
  static void measure(const Space& space, const slice& window, std::span<const T* const> vectors, double* gram,
                      std::size_t bytes) {
    space.measure(window, vectors, gram, bytes);
  }
};

/// So can mix: its stores can bypass the caches.
struct works_from_caches : measures_from_caches {
  template <class Space, scalar T>
  static void mix(const Space& space, const slice& window, std::span<const T* const> vectors, const double* weights,
                  T* out, std::size_t bytes) {
    space.mix(window, vectors, weights, out, bytes);
  }
};

/// Which of these a space is. The library's own say so where they are defined. A class that derives from one of them may have
/// replaced some of it, and does without.
template <class Space>
struct own_caches : no_caches {};

/// The same for at most two vectors at once. Likewise.
template <class Space>
struct own_pairs : own_caches<Space> {};

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
