// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include <adasum/core/scalar.hpp>
#include <adasum/core/segments.hpp>

namespace adasum::test {

/// What the kernels of one rank were asked in a reduction: by that one sees how a rule was run, whatever the reduction says.
struct kernel_calls {
  std::size_t most_measured = 0;  ///< vectors at once
  bool mixed_first = false;       ///< something was mixed before anything had been measured

  /// Of so many gradients, more than meet at one level.
  std::string_view how(std::size_t gradients) const {
    if (mixed_first || most_measured < 2) return "sums";
    return most_measured == gradients ? "at once" : "by levels";
  }
};

/// An execution space that notes it.
template <class Base>
struct watched_space : Base {
  kernel_calls* seen;
  watched_space(const Base& space, kernel_calls& calls) : Base(space), seen(&calls) {}
  friend bool operator==(const watched_space& a, const watched_space& b) { return a.seen == b.seen; }

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    note_measuring(vectors.size());
    Base::template measure<T>(window, vectors, gram);
  }
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    note_measuring(vectors.size());
    Base::template measure_in_double<T>(window, vectors, gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    seen->mixed_first = seen->mixed_first || seen->most_measured == 0;
    Base::template mix<T>(window, vectors, weights, out);
  }

 private:
  void note_measuring(std::size_t vectors) const { seen->most_measured = std::max(seen->most_measured, vectors); }
};

}  // namespace adasum::test
