// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <memory>
#include <type_traits>
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

/// An entry of a table of functions, for a member that a type may lack: null then.
/// @param call  a generic lambda: it is compiled only where the member is there
template <bool is_there, class Function, class Call>
constexpr Function entry_if(Call call) {
  if constexpr (is_there)
    return call;
  else
    return nullptr;
}

template <class Signature>
class function_ref;

/// A function that the caller has, for as long as the call lasts. (C++26 has it as std::function_ref.)
template <class Result, class... As>
class function_ref<Result(As...)> {
 public:
  template <class Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, function_ref>) function_ref(Function&& function)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, As... as) -> Result {
          return (*static_cast<std::remove_reference_t<Function>*>(object))(as...);
        }) {}

  Result operator()(As... as) const { return call_(object_, as...); }

 private:
  void* object_;
  Result (*call_)(void*, As...);
};

}  // namespace adasum::detail
