// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include "scenario.hpp"

/// What is compiled with instrumentation (ranks.cpp), and what that calls. Nothing here is inline: code that both sides
/// share would be instrumented, too.
namespace adasum::test::model {

// ── of ranks.cpp ──

/// What a rank does, from making its plan to dropping it.
void run_rank(const scenario& one, std::size_t rank);

// ── of words.cpp ──

/// What lies at an address in shared memory, and whose it is.
const char* name_of_word(std::size_t byte, bool is_atomic);
std::size_t rank_of_word(std::size_t byte);

// ── of outcomes.cpp ──

/// Before the ranks begin.
void forget_outcomes();
/// When all ranks have ended: what is wrong with how their runs ended, or null.
const char* find_wrong_outcome(const scenario& one);

// ── what ranks call ──

inline constexpr std::size_t shared_bytes = 8192;
/// The memory in which accesses are followed.
std::byte* shared_memory();
/// Whatever this rank does from here on follows from the label, and what is in shared memory.
void checkpoint(std::uint64_t label);
/// The same as at the last checkpoint, and where the rank has read last: in a loop that waits.
void in_loop();
void require(bool good, const char* what);
/// How a run has ended for a rank.
void note_outcome(std::size_t run, std::size_t rank, bool good);
/// Whether, for this rank, an hour passes whenever it asks for the time. Otherwise, none.
void let_time_fly(bool does);

}  // namespace adasum::test::model
