// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <memory>
#include <utility>

namespace adasum::detail::serial {

/// Uninitialised elements for the length of one call: on the stack where they are not more than Few, otherwise in memory
/// that the thread keeps, so that it allocates once for all calls of a size.
/// @tparam Use  what for: a type of each place that needs such elements, since one place's are there while another's are
template <class Use, class Element, std::size_t Few>
class scratch {
 public:
  explicit scratch(std::size_t count) : kept_(count > Few ? of_thread(count) : nullptr) {}
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  Element* data() { return kept_ ? kept_ : few_; }

 private:
  static Element* of_thread(std::size_t count) {
    thread_local std::pair<std::unique_ptr<Element[]>, std::size_t> kept{};
    auto& [elements, capacity] = kept;
    if (capacity < count) {
      elements = std::make_unique_for_overwrite<Element[]>(count);
      capacity = count;
    }
    return elements.get();
  }

  alignas(64) Element few_[Few];
  Element* kept_;
};

}  // namespace adasum::detail::serial
