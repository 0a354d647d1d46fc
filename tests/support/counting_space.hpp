// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <adasum/exec/serial.hpp>

namespace adasum::test {

/// What one rank's kernels read of vectors elsewhere than in its own gradient, and write there, in bytes.
template <scalar T>
struct touched {
  const T* own = nullptr;
  std::size_t length = 0, read = 0, written = 0;

  bool is_others(const void* at) const {
    const auto* const x = static_cast<const T*>(at);
    return std::less<>()(x, own) || !std::less<>()(x, own + length);
  }
};

template <scalar Element>
struct counting_space : serial_space {
  touched<Element>* counts = nullptr;
  friend bool operator==(const counting_space&, const counting_space&) = default;

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    count(window, vectors);
    serial_space::measure<T>(window, vectors, gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    count(window, vectors);
    serial_space::mix<T>(window, vectors, weights, out);
  }
  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    if (counts->is_others(to)) counts->written += count * sizeof(T);
    serial_space::copy(from, to, count);
  }

 private:
  template <scalar T>
  void count(const slice& window, std::span<const T* const> vectors) const {
    for (const T* const one : vectors)
      if (counts->is_others(one)) counts->read += window.range.size() * sizeof(T);
  }
};

}  // namespace adasum::test
