// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: execution_space<.*space\.fence\(\)
#include <adasum/adasum.hpp>

/// The serial space, but for fence().
struct fenceless_space {
  static constexpr std::string_view name = "fenceless";
  template <class T>
  std::vector<T> allocate(std::size_t count) const {
    return std::vector<T>(count);
  }
  template <class T>
  void measure(const adasum::slice& window, std::span<const T* const> vectors, double* gram) const {
    serial.measure(window, vectors, gram);
  }
  template <class T>
  void mix(const adasum::slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    serial.mix(window, vectors, weights, out);
  }
  template <class T>
  void copy(const T* from, T* to, std::size_t count) const {
    serial.copy(from, to, count);
  }
#ifdef CORRECTED
  void fence() const {}
#endif
  friend bool operator==(const fenceless_space&, const fenceless_space&) = default;
  adasum::serial_space serial;
};

void use(std::vector<float>& a, std::vector<float>& b) { adasum::adasum_pair(fenceless_space{}, a, b, a); }
