// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <adasum/core/report_writer.hpp>
#include <adasum/detail/engine/transport/transport.hpp>
#include <adasum/schedules/transfers.hpp>

/// What tests of transports share: one stage, driven as the engine would.
namespace adasum::test {

/// Calls verb(turn) until it is done. @param block  wait for other ranks, or ask again and again
template <class Verb>
void drive(detail::transport& by, bool block, const Verb& verb) {
  for (std::size_t turn = 0; verb(turn) == detail::progress::waits; ++turn)
    while (!by.arrived(block)) {
    }
}

/// A stage whose elements and inner products go by the same transport.
inline detail::bound_stage bound_to(detail::transport& by, const stage& one, std::size_t leaves) {
  return {one, detail::transfers_to_combine(one), detail::transfers_to_deliver(one, leaves), &by, &by};
}

inline detail::report_writer empty_report(int ranks) {
  return {static_cast<std::size_t>(ranks), 1, "rule", "schedule"};
}

/// 100·rank + x in element x.
template <class T>
std::vector<T> numbered(int rank, std::size_t length) {
  std::vector<T> gradient;
  for (std::size_t x = 0; x < length; ++x) gradient.push_back(static_cast<T>(100 * rank) + static_cast<T>(x));
  return gradient;
}

template <class T>
std::byte* bytes_of(std::vector<T>& gradient) {
  return reinterpret_cast<std::byte*>(gradient.data());
}

template <class T>
const T* elements_of(const std::byte* vector) {
  return reinterpret_cast<const T*>(vector);
}

}  // namespace adasum::test
