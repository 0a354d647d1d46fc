// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "../../core/segments.hpp"
#include "allgather.hpp"
#include "call_signature.hpp"

/// The check that all ranks are about to do the same thing.
namespace adasum::detail {

inline std::string rank_name(std::size_t rank) { return "rank " + std::to_string(rank); }

/// What is wrong with the input of some ranks, if anything is.
inline std::string problems_of(std::span<const call_signature> all) {
  std::string problems;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].problem[0] != '\0')
      problems += (problems.empty() ? "" : "; ") + rank_name(r) + ": " + call_signature::get(all[r].problem);
  return problems;
}

/// One thing that ranks may disagree on, and how it reads.
struct compared_field {
  const char* what;
  std::string (*text)(const call_signature&);
};

/// The first thing in which two ranks differ, segments' boundaries excepted; empty if there is none.
inline std::string difference_between(std::span<const call_signature> all) {
  // This check runs before every reduction: texts are made only when something differs.
  const auto same = [&](const call_signature& c) { return c.equals_but_boundaries(all[0]); };
  if (std::ranges::all_of(all, same)) return {};
  using signature = const call_signature&;
  const compared_field fields[] = {
      {"scalar type", [](signature c) { return call_signature::get(c.scalar); }},
      {"length of the gradient", [](signature c) { return std::to_string(c.length); }},
      {"number of segments", [](signature c) { return std::to_string(c.segments); }},
      {"rule", [](signature c) { return call_signature::get(c.rule); }},
      {"schedule", [](signature c) { return call_signature::get(c.schedule); }},
      {"inner rule of the schedule", [](signature c) { return call_signature::get(c.inner_rule); }},
      {"location of the gradient", [](signature c) { return call_signature::get(c.location); }},
      {"options", [](signature c) { return call_signature::get(c.options); }},
      {"execution space", [](signature c) { return call_signature::get(c.space); }}};
  for (const auto& field : fields)
    for (std::size_t r = 1; r < all.size(); ++r)
      if (field.text(all[r]) != field.text(all[0]))
        return std::string("adasum: the ranks disagree on the ") + field.what + ": rank 0 has " + field.text(all[0]) +
               ", " + rank_name(r) + " has " + field.text(all[r]);
  return {};
}

/// Whether the ranks' segments have the same boundaries. @pre they have as many
inline bool same_boundaries(std::span<const call_signature> all) {
  return std::ranges::all_of(all, [&](const auto& c) { return c.segments_hash == all[0].segments_hash; });
}

/// Buffers of an agreement, kept between runs so that none is allocated.
struct agreement_memory {
  explicit agreement_memory(int size = 0)
      : signatures(static_cast<std::size_t>(size)), words(static_cast<std::size_t>(size)) {}
  std::vector<call_signature> signatures;  ///< of all ranks
  std::vector<std::uint64_t> words;        ///< of all ranks
};

/// Every rank tells all others what it is about to do, and all compare. One exchange after another, so that the caller
/// may do something else while one is in flight. Where the segments differ, the ranks go on to find the first boundary
/// that does: each round halves where it can be, by a hash of the boundaries up to the middle.
class agreement {
 public:
  agreement() = default;
  /// @param mine      what this rank does; it is copied
  /// @param segments, memory  must live until the end
  agreement(const call_signature& mine, segments_view segments, int rank, int size, agreement_memory& memory)
      : offsets_(segments.offsets()), rank_(rank), size_(size), memory_(&memory) {
    exchange_ =
        allgather(std::as_bytes(std::span(&mine, 1)), rank, size, std::as_writable_bytes(std::span(memory.signatures)));
  }

  /// Appends the messages of the next exchange. @return whether there is one
  bool next(std::vector<outgoing>& out, std::vector<incoming>& in) {
    while (!exchange_.next(out, in))
      if (!begin_next_round()) return false;
    return true;
  }

  /// When there is no more. @throws agreement_error if a rank has bad input, or if two ranks are about to do different
  /// things; the same on every rank
  void require() const {
    if (!problem_.empty()) throw agreement_error(problem_);
  }

 private:
  enum class round { signatures, search, show };

  bool begin_next_round() {
    switch (round_) {
      case round::signatures: {
        const std::span<const call_signature> all(memory_->signatures);
        problem_ = problems_of(all);
        if (problem_.empty()) problem_ = difference_between(all);
        if (!problem_.empty()) return false;
        if (same_boundaries(all)) {
          compare_parameters(all);
          return false;
        }
        equal_ = 0;
        different_ = offsets_.size() - 1;
        break;
      }
      case round::search: (all_words_are_equal() ? equal_ : different_) = middle(); break;
      case round::show: describe_boundaries(); return false;
    }
    round_ = different_ - equal_ > 1 ? round::search : round::show;
    word_ = round_ == round::search ? hash(offsets_.first(middle() + 1)) : offsets_[different_];
    exchange_ =
        allgather(std::as_bytes(std::span(&word_, 1)), rank_, size_, std::as_writable_bytes(std::span(memory_->words)));
    return true;
  }

  void compare_parameters(std::span<const call_signature> all) {
    const auto& first = all[0];
    const auto differ = [&](const std::string& what, const char* in, std::size_t r) {
      problem_ = "adasum: the ranks disagree on the parameters of the " + what + ": " + in + " of rank 0 and of " +
                 rank_name(r) + " differ";
    };
    for (std::size_t r = 1; r < all.size() && problem_.empty(); ++r) {
      if (all[r].rule_hash != first.rule_hash)
        differ("rule " + call_signature::get(first.rule), "those", r);
      else if (all[r].inner_rule_hash != first.inner_rule_hash)
        differ("inner rule " + call_signature::get(first.inner_rule), "those", r);
      else if (all[r].schedule_hash != first.schedule_hash)
        differ("schedule " + call_signature::get(first.schedule), "the stages", r);
    }
  }

  std::size_t middle() const { return equal_ + (different_ - equal_) / 2; }
  bool all_words_are_equal() const {
    return std::ranges::all_of(memory_->words, [&](auto word) { return word == memory_->words[0]; });
  }
  void describe_boundaries() {
    const auto& ends = memory_->words;
    for (std::size_t r = 1; r < ends.size(); ++r)
      if (ends[r] != ends[0]) {
        problem_ = "adasum: the ranks disagree on the segments: segment " + std::to_string(different_ - 1) +
                   " ends at element " + std::to_string(ends[0]) + " on rank 0, and at element " +
                   std::to_string(ends[r]) + " on " + rank_name(r);
        return;
      }
    problem_ = "adasum: the ranks disagree on the segments";
  }

  std::span<const std::size_t> offsets_;
  int rank_ = 0, size_ = 1;
  agreement_memory* memory_ = nullptr;
  allgather exchange_;
  round round_ = round::signatures;
  std::size_t equal_ = 0, different_ = 0;  // boundaries up to here are equal; of those up to there, one is not
  std::uint64_t word_ = 0;
  std::string problem_;
};

/// The whole of it; blocks. These are the exchanges of the step `agree` (steps.hpp), so that ranks may meet of which one
/// is in a run, and another about to make a plan.
/// @throws agreement_error as above
template <class Space, class Comm>
void agree(const Space& space, const Comm& comm, const call_signature& mine, segments_view segments,
           agreement_memory& memory) {
  agreement run(mine, segments, comm.rank(), comm.size(), memory);
  std::vector<outgoing> out;
  std::vector<incoming> in;
  for (; run.next(out, in); out.clear(), in.clear()) comm.exchange(space, out, in);
  run.require();
}

}  // namespace adasum::detail
