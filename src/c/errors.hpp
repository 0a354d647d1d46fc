// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>

#include <adasum/adasum.h>

/// Between exceptions and the numbers that C gets.
namespace adasum::c {

/// Keeps the message of the exception that is being handled, for this thread. @return its number
int note_exception() noexcept;
const char* last_message() noexcept;

/// ADASUM_SUCCESS, or what function() throws, as a number.
template <class Function>
int error_of(Function&& function) noexcept {
  try {
    std::forward<Function>(function)();
    return ADASUM_SUCCESS;
  } catch (...) {
    return note_exception();
  }
}

/// What function() returns, or the other value if it throws.
template <class Value, class Function>
Value value_or(Value otherwise, Function&& function) noexcept {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    note_exception();
    return otherwise;
  }
}

/// @throws bad_input  a null pointer where a result is to be written. @param what  its name
void require_pointer(const void* pointer, const char* call, const char* what);

}  // namespace adasum::c
