// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <adasum/core/input_checks.hpp>

#include "calls.hpp"

/// The arguments that calls have in common, as C gives them.
namespace adasum::c {

struct call_arguments {
  const char* call;
  std::size_t count;
  int type;
  const char* rule = nullptr;     // null: adasum
  const char* options = nullptr;  // null: the defaults
  const char* problem = nullptr;  // what the caller knows to be wrong; null: nothing
};

/// All that the arguments say, but for the segments. @throws bad_input  they cannot be used
request rule_and_options_of(const call_arguments& given);

/// @throws bad_input  no memory holds so many, as where a negative number became unsigned
inline void require_room(std::size_t count, const char* what, const char* call) {
  if (count > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(double))
    throw bad_input({call, ": no memory holds ", count, " ", what, "; a negative count looks like this"});
}

/// The lengths, or all of the array where there are none. @param lengths  null if and only if there are none
/// @throws bad_input  a negative length, or they do not add up to the array; an array that no memory can hold
template <std::integral Length>
segments segments_of(const Length* lengths, std::size_t number, const call_arguments& given) {
  require_room(given.count, "elements", given.call);
  if (!lengths && number == 0) return segments::whole(given.count);
  if (!lengths) throw bad_input({given.call, ": the lengths of ", number, " segments are a null pointer"});
  segments cut(lengths, lengths + number);
  adasum::detail::require_segments_match(cut, given.count, given.call);
  return cut;
}

/// @throws bad_input  an array of no elements of this type: its address is no multiple of their alignment
void require_aligned(const void* data, const element_type& type, const char* call);
/// What is wrong with the address; empty if nothing.
std::string problem_with_address(const void* data, const element_type& type, const char* call);

/// Whether the options ask that ranks compare what they do; false if they cannot be read.
bool asks_for_agreement(const char* options);

/// Tells the other ranks, in the exchange in which they are about to meet, that this one has failed, and throws on what it is
/// handling.
[[noreturn]] void fail_among_ranks(const adasum::detail::communicator_ref& comm, const call_arguments& given);

/// Calls prepare() for a collective call: all that may fail on this rank alone before the ranks meet.
template <class Prepare>
void prepare_among_ranks(const adasum::detail::communicator_ref& comm, const call_arguments& given, Prepare&& prepare) {
  try {
    prepare();
  } catch (...) {
    fail_among_ranks(comm, given);
  }
}
template <class Prepare>
void prepare_among_ranks(const any_communicator& comm, const call_arguments& given, Prepare&& prepare) {
  prepare_among_ranks(ranks_of(comm), given, std::forward<Prepare>(prepare));
}

}  // namespace adasum::c
