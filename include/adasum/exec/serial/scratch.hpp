// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

namespace adasum::detail::serial {

/// Uninitialised elements for the length of one call: on the stack where they are not more than Few, otherwise in memory
/// that the thread keeps, so that it allocates once for all calls of a size.
/// @tparam Use  what for: a type of each place that needs such elements, since one place's are there while another's are
template <class Use, class Element, std::size_t Few>
class scratch {
 public:
  explicit scratch(std::size_t count) : data_(count > Few ? of_thread(count) : few_) {}
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  Element* data() { return data_; }

 private:
  struct kept_elements {
    kept_elements() = default;
    kept_elements(const kept_elements&) = delete;
    kept_elements& operator=(const kept_elements&) = delete;
    ~kept_elements() { delete[] elements; }
    Element* elements = nullptr;
    std::size_t capacity = 0;
  };

  static Element* of_thread(std::size_t count) {
    thread_local kept_elements kept;
    if (kept.capacity < count) {
      auto* const more = new Element[count];
      delete[] kept.elements;
      kept.elements = more;
      kept.capacity = count;
    }
    return kept.elements;
  }

  alignas(64) Element few_[Few];
  Element* data_;
};

}  // namespace adasum::detail::serial
