// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "error.hpp"
#include "segments.hpp"

/// What the calls check about gradients and segments before anything changes. `call` begins the message.
namespace adasum::detail {

/// Whether boundaries begin at 0 and do not decrease.
inline bool are_boundaries(segments_view segments) {
  const auto offsets = segments.offsets();
  bool good = !offsets.empty() && offsets.front() == 0;
  for (std::size_t k = 1; k < offsets.size(); ++k) good = good && offsets[k - 1] <= offsets[k];
  return good;
}

void require_boundaries(segments_view segments, const char* call);
void require_segments_match(segments_view segments, std::size_t length, const char* call);

// The messages about arrays. @param what  the array
[[noreturn]] void refuse_overlap(const std::string& what, std::size_t count, std::size_t out, const char* call);
[[noreturn]] void refuse_null(const std::string& what, std::size_t count, const char* call);
[[noreturn]] void refuse_unreachable(const std::string& what, std::size_t count, std::string_view space,
                                     const char* call);
[[noreturn]] void refuse_length(const std::string& what, std::size_t count, std::size_t out, const char* call);
[[noreturn]] void refuse_no_gradient(const char* call);

/// Two arrays may be the same one, or apart; anything between would be read after it has been written.
template <class T>
void require_same_or_apart(std::span<const T> input, std::span<const T> out, const auto& what, const char* call) {
  const auto begin = [](std::span<const T> s) { return reinterpret_cast<std::uintptr_t>(s.data()); };
  const auto end = [&](std::span<const T> s) { return begin(s) + s.size_bytes(); };
  if (begin(input) == begin(out) || input.empty() || out.empty()) return;
  if (begin(input) < end(out) && begin(out) < end(input)) refuse_overlap(what(), input.size(), out.size(), call);
}

template <class T>
void require_not_null(std::span<const T> array, const auto& what, const char* call) {
  if (array.data() == nullptr && !array.empty()) refuse_null(what(), array.size(), call);
}

template <class Space, class T>
inline constexpr bool tells_what_it_reaches = requires(const Space& space, const T* address) {
  { space.can_reach(address) } -> std::same_as<bool>;
};

/// For spaces that can tell: memory that their kernels cannot read ends the program on some devices.
template <class Space, class T>
void require_reachable(const Space& space, std::span<const T> array, const auto& what, const char* call) {
  if constexpr (tells_what_it_reaches<Space, T>)
    if (!array.empty() && !space.can_reach(array.data())) refuse_unreachable(what(), array.size(), space.name, call);
}

/// Inputs of one length, segments that add up to it, an output that is apart from every input or is one of them; all of
/// them where the space can reach them.
template <class T, class Space>
[[gnu::noinline]] void require_combinable(const Space& space, std::span<const std::span<const T>> inputs,
                                          std::span<T> out, segments_view segments, const char* call) {
  if (inputs.empty()) refuse_no_gradient(call);
  const auto output = [] { return std::string("the output"); };
  require_not_null(std::span<const T>(out), output, call);
  require_reachable(space, std::span<const T>(out), output, call);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto which = [i] { return joined({"gradient ", i}); };
    if (inputs[i].size() != out.size()) refuse_length(which(), inputs[i].size(), out.size(), call);
    require_not_null(inputs[i], which, call);
    require_reachable(space, inputs[i], which, call);
    require_same_or_apart(inputs[i], std::span<const T>(out), which, call);
  }
  require_segments_match(segments, out.size(), call);
}

/// What is wrong with a gradient for a plan of this length; empty if nothing.
/// @param space  a space_ref
template <class Space>
std::string problem_with_gradient(const Space& space, const std::byte* elements, std::size_t count, std::size_t length,
                                  const char* plan) {
  if (count != length)
    return joined({plan, ": the gradient has ", counted(count, "element"), ", the plan is for ", length});
  if (elements == nullptr && count > 0)
    return joined({plan, ": the gradient is a null pointer with ", counted(count, "element")});
  if (count > 0 && !space.can_reach(elements))
    return joined({plan, ": the gradient does not lie in memory that the execution space \"", space.name(),
                   "\" can reach (", counted(count, "element"), ")"});
  return {};
}

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS

namespace adasum::detail {

ADASUM_INLINE void require_boundaries(segments_view segments, const char* call) {
  if (!are_boundaries(segments))
    throw bad_input({call, ": the boundaries of the segments must begin at 0 and not decrease"});
}

ADASUM_INLINE void require_segments_match(segments_view segments, std::size_t length, const char* call) {
  require_boundaries(segments, call);
  if (segments.all().end != length)
    throw bad_input(
        {call, ": the segments hold ", counted(segments.all().end, "element"), " in all, the gradient has ", length});
}

ADASUM_INLINE void refuse_overlap(const std::string& what, std::size_t count, std::size_t out, const char* call) {
  throw bad_input({call, ": the output overlaps ", what, " in part (", count, " and ", counted(out, "element"),
                   "); they must be the same array or apart"});
}

ADASUM_INLINE void refuse_null(const std::string& what, std::size_t count, const char* call) {
  throw bad_input({call, ": ", what, " is a null pointer with ", counted(count, "element")});
}

ADASUM_INLINE void refuse_unreachable(const std::string& what, std::size_t count, std::string_view space,
                                      const char* call) {
  throw bad_input({call, ": ", what, " does not lie in memory that the execution space \"", space, "\" can reach (",
                   counted(count, "element"), ")"});
}

ADASUM_INLINE void refuse_length(const std::string& what, std::size_t count, std::size_t out, const char* call) {
  throw bad_input({call, ": ", what, " has ", counted(count, "element"), ", the output has ", out});
}

ADASUM_INLINE void refuse_no_gradient(const char* call) {
  throw bad_input({call, ": there is no gradient to combine"});
}

}  // namespace adasum::detail
#endif
