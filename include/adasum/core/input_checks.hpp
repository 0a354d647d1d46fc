// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "error.hpp"
#include "segments.hpp"

/// What the calls check about gradients and segments before anything changes. `call` begins the message.
namespace adasum::detail {

/// Whether boundaries begin at 0 and do not decrease.
inline bool are_boundaries(segments_view segments) {
  const auto offsets = segments.offsets();
  return !offsets.empty() && offsets.front() == 0 && std::ranges::is_sorted(offsets);
}

inline void require_boundaries(segments_view segments, const char* call) {
  if (!are_boundaries(segments))
    throw bad_input(std::string(call) + ": the boundaries of the segments must begin at 0 and not decrease");
}

inline void require_segments_match(segments_view segments, std::size_t length, const char* call) {
  require_boundaries(segments, call);
  if (segments.all().end != length)
    throw bad_input(std::string(call) + ": the segments hold " + counted(segments.all().end, "element") +
                    " in all, the gradient has " + std::to_string(length));
}

/// Two arrays may be the same one, or apart; anything between would be read after it has been written.
template <class T>
void require_same_or_apart(std::span<const T> input, std::span<const T> out, const auto& what, const char* call) {
  const auto begin = [](std::span<const T> s) { return reinterpret_cast<std::uintptr_t>(s.data()); };
  const auto end = [&](std::span<const T> s) { return begin(s) + s.size_bytes(); };
  if (begin(input) == begin(out) || input.empty() || out.empty()) return;
  if (begin(input) < end(out) && begin(out) < end(input))
    throw bad_input(std::string(call) + ": the output overlaps " + what() + " in part (" +
                    std::to_string(input.size()) + " and " + counted(out.size(), "element") +
                    "); they must be the same array or apart");
}

template <class T>
void require_not_null(std::span<const T> array, const auto& what, const char* call) {
  if (array.data() == nullptr && !array.empty())
    throw bad_input(std::string(call) + ": " + what() + " is a null pointer with " + counted(array.size(), "element"));
}

template <class Space, class T>
inline constexpr bool tells_what_it_reaches = requires(const Space& space, const T* address) {
  { space.can_reach(address) } -> std::same_as<bool>;
};

/// For spaces that can tell: memory that their kernels cannot read ends the program on some devices.
template <class Space, class T>
void require_reachable(const Space& space, std::span<const T> array, const auto& what, const char* call) {
  if constexpr (tells_what_it_reaches<Space, T>)
    if (!array.empty() && !space.can_reach(array.data()))
      throw bad_input(std::string(call) + ": " + what() + " does not lie in memory that the execution space \"" +
                      std::string(Space::name) + "\" can reach (" + counted(array.size(), "element") + ")");
}

/// Inputs of one length, segments that add up to it, an output that is apart from every input or is one of them; all of
/// them where the space can reach them.
template <class T, class Space>
[[gnu::noinline]] void require_combinable(const Space& space, std::span<const std::span<const T>> inputs,
                                          std::span<T> out, segments_view segments, const char* call) {
  if (inputs.empty()) throw bad_input(std::string(call) + ": there is no gradient to combine");
  const auto output = [] { return std::string("the output"); };
  require_not_null(std::span<const T>(out), output, call);
  require_reachable(space, std::span<const T>(out), output, call);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto which = [i] { return "gradient " + std::to_string(i); };
    if (inputs[i].size() != out.size())
      throw bad_input(std::string(call) + ": " + which() + " has " + counted(inputs[i].size(), "element") +
                      ", the output has " + std::to_string(out.size()));
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
    return std::string(plan) + ": the gradient has " + counted(count, "element") + ", the plan is for " +
           std::to_string(length);
  if (elements == nullptr && count > 0)
    return std::string(plan) + ": the gradient is a null pointer with " + counted(count, "element");
  if (count > 0 && !space.can_reach(elements))
    return std::string(plan) + ": the gradient does not lie in memory that the execution space \"" +
           std::string(space.name()) + "\" can reach (" + counted(count, "element") + ")";
  return {};
}

}  // namespace adasum::detail
