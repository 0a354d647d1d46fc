// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/segments.hpp>
#include <adasum/exec/serial.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>

#include "recording.hpp"

namespace adasum::test::model {

/// A call of the execution space that fails: one of these kinds, and which of them.
struct failing_call {
  enum class kind { none, measure_or_mix, mix, copy } what = kind::none;
  std::size_t number = 0;
};

/// Says which elements of gradients it reads and writes.
struct recorded_space : serial_space {
  failing_call* failing = nullptr;
  friend bool operator==(const recorded_space&, const recorded_space&) = default;

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    if (is(failing_call::kind::measure_or_mix)) fail();
    note(window, vectors);
    serial_space::measure<T>(window, vectors, gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    if (is(failing_call::kind::measure_or_mix) || is(failing_call::kind::mix)) fail();
    note(window, vectors);
    note(window, out, true);
    serial_space::mix<T>(window, vectors, weights, out);
  }
  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    recording::current->access(from, count * sizeof(T), false);
    recording::current->access(to, count * sizeof(T), true);
    serial_space::copy(from, to, count);
    if (is(failing_call::kind::copy)) fail();  // once it is done
  }

 private:
  bool is(failing_call::kind what) const { return failing->what == what && --failing->number == 0; }
  static void fail() { throw std::runtime_error("a call of the execution space fails"); }
  template <scalar T>
  static void note(const slice& window, const T* vector, bool writes) {
    recording::current->access(vector + (window.range.begin - window.origin), window.range.size() * sizeof(T), writes);
  }
  template <scalar T>
  static void note(const slice& window, std::span<const T* const> vectors) {
    for (const auto* const vector : vectors) note(window, vector, false);
  }
};

}  // namespace adasum::test::model
