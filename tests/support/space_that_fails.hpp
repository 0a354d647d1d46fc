// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>

#include <adasum/exec/serial.hpp>

namespace adasum::test {

/// Throws at its n-th call.
struct space_that_fails : serial_space {
  int* calls_left = nullptr;
  friend bool operator==(const space_that_fails&, const space_that_fails&) = default;

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    fail_sometimes();
    serial_space::measure<T>(window, vectors, gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    fail_sometimes();
    serial_space::mix<T>(window, vectors, weights, out);
  }
  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    fail_sometimes();
    serial_space::copy(from, to, count);
  }

 private:
  void fail_sometimes() const {
    if (calls_left && --*calls_left == 0) throw std::runtime_error("a kernel fails");
  }
};

}  // namespace adasum::test
