// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <memory>
#include <utility>

namespace adasum::detail {

/// An object of any type, owned.
using owned_object = std::unique_ptr<void, void (*)(void*)>;

inline owned_object no_object() {
  return {nullptr, [](void*) {}};
}

template <class Object>
owned_object own(Object object) {
  return {new Object(std::move(object)), [](void* held) { delete static_cast<Object*>(held); }};
}

}  // namespace adasum::detail
