// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "../../core/segments.hpp"
#include "../../core/tracing.hpp"
#include "../references/communicator_ref.hpp"
#include "call_signature.hpp"
#include "shared_votes.hpp"
#include "small_exchanges.hpp"

/// The check that all ranks are about to do the same thing.
namespace adasum::detail {

/// What is wrong with the input of some ranks, if anything is; once, if it is the same on all of several.
inline std::string problems_of(std::span<const call_signature> all) {
  const auto is_first = [&](const call_signature& one) { return one.problem == all[0].problem; };
  if (all.size() > 1 && all[0].problem[0] != '\0' && std::ranges::all_of(all, is_first))
    return std::string("all ranks: ") + call_signature::get(all[0].problem);
  std::string problems;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].problem[0] != '\0')
      problems += (problems.empty() ? "" : "; ") + rank_name(r) + ": " + call_signature::get(all[r].problem);
  return problems;
}

/// What ranks compare that reads as short texts, in the order in which differences are told.
struct compared_text {
  const char* what;
  std::string text;
};
inline std::array<compared_text, 14> texts_of(const call_signature& c) {
  const auto text = [](const auto& field) { return call_signature::get(field); };
  return {{{"kind of gradients", text(c.shards)},
           {"call", text(c.activity)},
           {"scalar type", text(c.scalar)},
           {"length of the gradient", std::to_string(c.length)},
           {"destination of the result", text(c.destination)},
           {"parts", text(c.parts)},
           {"number of segments", std::to_string(c.segments)},
           {"rule", text(c.rule.name)},
           {"schedule", text(c.schedule.name)},
           {"inner rule of the schedule", text(c.inner_rule.name)},
           {"execution space", text(c.space)},
           {"location of the gradient", text(c.location)},
           {"options", text(c.options)},
           {"type in which gradients that cancel are combined", c.recombines_in_double ? "double" : "their own"}}};
}

/// The first of them in which two ranks differ; empty if there is none.
inline std::string difference_in_texts(std::span<const call_signature> all) {
  const auto first = texts_of(all[0]);
  for (std::size_t i = 0; i < first.size(); ++i)
    for (std::size_t r = 1; r < all.size(); ++r)
      if (const auto other = texts_of(all[r]); other[i].text != first[i].text)
        return joined({"adasum: the ranks disagree on the ", first[i].what, ": rank 0 has ", first[i].text, ", ",
                       rank_name(r), " has ", other[i].text});
  return {};
}

/// The first rank that differs from rank 0 in a number of its signature; 0 if there is none.
inline std::size_t first_to_differ(std::span<const call_signature> all, std::uint64_t call_signature::*number) {
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return one.*number != all[0].*number; });
  return found == all.end() ? 0 : static_cast<std::size_t>(found - all.begin());
}

/// Whether two ranks have rules or schedules of one name with different parameters; empty if not.
inline std::string difference_in_parameters(std::span<const call_signature> all, const std::string& what,
                                            call_signature::named call_signature::*which) {
  const auto values = [](const call_signature::named& of) {
    return of.parameters[0] == '\0' ? "none" : call_signature::get(of.parameters);
  };
  const auto& first = all[0].*which;
  for (std::size_t r = 1; r < all.size(); ++r) {
    const auto& other = all[r].*which;
    if (other.name != first.name || other.hash == first.hash) continue;
    const auto begin =
        "adasum: the ranks disagree on the parameters of the " + what + " " + call_signature::get(first.name) + ": ";
    if (other.parameters == first.parameters)  // they differ behind what there was room for
      return joined({begin, "those of rank 0 and of ", rank_name(r), " differ"});
    return joined({begin, "rank 0 has ", values(first), ", ", rank_name(r), " has ", values(other)});
  }
  return {};
}

/// Of ranks with the same segments, which differ in nothing that difference_in_texts() finds.
inline std::string difference_in_the_rest(std::span<const call_signature> all) {
  using signature = call_signature;
  auto found = difference_in_parameters(all, "rule", &signature::rule);
  if (found.empty()) found = difference_in_parameters(all, "inner rule", &signature::inner_rule);
  if (!found.empty()) return found;
  if (const auto r = first_to_differ(all, &signature::parts_hash))  // they differ behind what there was room for
    return joined({"adasum: the ranks disagree on the parts: those of rank 0 and of ", rank_name(r), " differ"});
  if (const auto r = first_to_differ(all, &signature::stages_hash))
    return joined({"adasum: the ranks disagree on the parameters of the schedule ",
                   signature::get(all[0].schedule.name), ": the stages of rank 0 and of ", rank_name(r), " differ"});
  if (const auto r = first_to_differ(all, &signature::plan_is_kept))
    return joined(
        {"adasum: ", rank_name(all[0].plan_is_kept ? 0 : r), " has kept a plan of this call, ",
         rank_name(all[0].plan_is_kept ? r : 0),
         " has not, because an earlier call failed there alone. All ranks have now dropped theirs: call again"});
  return {};
}

/// Every rank tells all others whether it is ready, and a hash of what it is about to do: in memory that all share
/// (shared_votes.hpp), or by messages (small_exchanges.hpp). Mostly that is all. Otherwise they find out what is wrong, if all of
/// them want to know: every rank tells all others what it is about to do, and all compare. Where the segments differ, the ranks
/// go on to find the first boundary that does: each round halves where it can be, by a hash of the boundaries up to the middle.
/// One exchange after another, so that the caller may do something else while one is in flight.
class agreement {
 public:
  agreement() = default;
  /// @param mine      what this rank does; it must live until the end
  /// @param compares  whether ranks that disagree find out in what
  /// @param segments, memory  must live until the end. Without memory, where the ranks compare, this rank has failed
  /// @param bytes     of memory that this rank needs to share with others
  /// @param run       the number of the run in memory that ranks share, if there is one
  agreement(hashed_signature mine, bool compares, segments_view segments, int rank, int size, agreement_memory& memory,
            std::size_t bytes = 0, std::uint64_t run = 0)
      : mine_(mine.what), offsets_(segments.offsets()), rank_(rank), size_(size), memory_(&memory) {
    setup_vote own{.intent = mine.intent};
    own.flags = compares ? setup_vote::compares : setup_vote::does_not;
    if (compares && memory.empty()) own.flags |= setup_vote::cannot_compare;
    if (mine_->has_problem() || own.has(setup_vote::cannot_compare)) own.failed = rank;
    own.bytes = bytes;
    own.run = run;
    ready_ = setup_vote_exchange(own, rank, size);
  }

  /// What this rank tells.
  const setup_vote& vote() const { return ready_.state(); }
  /// Whether that is that it cannot set out.
  bool has_problem() const { return vote().failed != setup_vote::nobody; }
  /// Instead of the first messages: what all ranks have told.
  void settle(const setup_vote& all) {
    ready_ = setup_vote_exchange(all, 0, 1);
    settled_ = true;
  }
  bool is_settled() const { return settled_; }

  /// Appends the messages of the next exchange. @return whether there is one
  template <class Out, class In>
  bool next(Out& out, In& in) {
    if (round_ == round::setup_vote) {
      if (ready_.next(out, in)) return true;
      if (!begin_comparing()) return false;
    }
    while (!exchange_.next(out, in))
      if (!begin_next_round()) return false;
    return true;
  }
  /// The last exchange did not bring what it should; the others are to be told. @return whether they can be
  bool fail(std::exception_ptr cause) {
    if (round_ != round::setup_vote) return false;
    if (!cause_) cause_ = std::move(cause);
    ready_.fail();
    return true;
  }

  /// Messages may still be in flight: what they use stays for good. (A short message is the communicator's matter.)
  void leave_memory() {
    if (memory_ && !memory_->empty()) new (std::nothrow) agreement_memory(std::move(*memory_));
  }

  /// When there is no more. The same on every rank:
  /// @throws agreement_error      a rank has bad input, or two ranks are about to do different things
  /// @throws communication_error  where the ranks do not compare
  /// @throws the first cause that fail() was given
  void require() const {
    if (!problem_.empty()) throw agreement_error(problem_);
    if (cause_) std::rethrow_exception(cause_);
    if (!ready_.state().is_good()) throw communication_error(describe(ready_.state()));
  }
  /// After that: the number of the run, the same on all ranks.
  std::uint64_t run() const { return ready_.state().run; }
  /// And the most memory that one of the ranks needs to share.
  std::size_t bytes_to_share() const { return static_cast<std::size_t>(ready_.state().bytes); }

 private:
  enum class round { setup_vote, signatures, search, show };

  static std::string describe(const setup_vote& all) {
    if (all.failed != setup_vote::nobody)
      return joined({"adasum: ", rank_name(all.failed), " has failed; its own error says why"});
    if (all.has(setup_vote::compares) && all.has(setup_vote::does_not))
      return "adasum: the option check_agreement is on for some ranks and off for others";
    return "adasum: the ranks are making different calls; set the option check_agreement to learn how they differ";
  }

  /// @return whether the ranks find out what is wrong
  bool begin_comparing() {
    const auto& all = ready_.state();
    if (all.is_good() || all.has(setup_vote::does_not) || all.has(setup_vote::cannot_compare)) return false;
    round_ = round::signatures;
    exchange_ = allgather(std::as_bytes(std::span(mine_, 1)), rank_, size_,
                          std::as_writable_bytes(std::span(memory_->signatures)));
    return true;
  }

  bool begin_next_round() {
    switch (round_) {
      case round::setup_vote: return false;
      case round::signatures: {
        const std::span<const call_signature> all(memory_->signatures);
        problem_ = problems_of(all);
        if (problem_.empty())  // other differences may follow from this one
          problem_ = difference_in_parameters(all, "schedule", &call_signature::schedule);
        if (problem_.empty()) problem_ = difference_in_texts(all);
        if (!problem_.empty()) return false;
        if (first_to_differ(all, &call_signature::segments_hash) == 0) {
          problem_ = difference_in_the_rest(all);
          return false;
        }
        equal_ = 0;
        different_ = offsets_.size() - 1;
        break;
      }
      case round::search: (first_other_word() == 0 ? equal_ : different_) = middle(); break;
      case round::show: problem_ = difference_in_boundaries(); return false;
    }
    round_ = different_ - equal_ > 1 ? round::search : round::show;
    word_ = round_ == round::search ? hash(offsets_.first(middle() + 1)) : offsets_[different_];
    exchange_ =
        allgather(std::as_bytes(std::span(&word_, 1)), rank_, size_, std::as_writable_bytes(std::span(memory_->words)));
    return true;
  }

  std::size_t middle() const { return equal_ + (different_ - equal_) / 2; }
  /// The first rank whose word is not that of rank 0; 0 if all are the same.
  std::size_t first_other_word() const {
    const auto& words = memory_->words;
    const auto other = std::ranges::find_if(words, [&](auto word) { return word != words[0]; });
    return other == words.end() ? 0 : static_cast<std::size_t>(other - words.begin());
  }

  std::string difference_in_boundaries() const {
    std::string found = "adasum: the ranks disagree on the segments";
    const auto r = first_other_word();
    if (r == 0) return found;
    const auto end_on = [&](std::size_t rank) { return std::to_string(memory_->words[rank]); };
    return joined({found, ": segment ", different_ - 1, " ends at element ", end_on(0), " on rank 0, and at element ",
                   end_on(r), " on ", rank_name(r)});
  }

  const call_signature* mine_ = nullptr;
  std::span<const std::size_t> offsets_;
  int rank_ = 0, size_ = 1;
  agreement_memory* memory_ = nullptr;
  setup_vote_exchange ready_;
  allgather exchange_;
  round round_ = round::setup_vote;
  bool settled_ = false;
  std::size_t equal_ = 0, different_ = 0;  // boundaries up to here are equal; of those up to there, one is not
  std::uint64_t word_ = 0;
  std::string problem_;
  std::exception_ptr cause_;
};

/// The whole of it; blocks. These are the exchanges of the step `agree` (bound_stages.hpp), so that ranks may meet of which one
/// is in a run, and another about to make a plan. Until the ranks begin to compare, nothing is allocated.
/// @return agreement::bytes_to_share
/// @throws what agreement::require throws, on all ranks
/// @throws timeout_error  this rank has given up waiting for another
inline std::size_t agree(const communicator_ref& comm, agreement run) {
  const trace_range traced(active_tracer, "wait", 0);
  if (auto* const shared = comm.votes()) {
    try {
      shared->begin(run.vote());
      do shared->arrived(true);
      while (shared->next());
      run.settle(shared->all());
    } catch (const communication_error&) {
      if (!votes_by_messages_now(comm)) throw;
    }
  }
  at_most_one<outgoing> out;
  at_most_one<incoming> in;
  for (; run.next(out, in); out.clear(), in.clear()) {
    try {
      attempt([&] { comm.exchange(out.all(), in.all()); });
    } catch (const timeout_error&) {
      if (comm.gave_up()) run.leave_memory();
      throw;
    } catch (...) {
      if (!run.fail(std::current_exception())) throw;
    }
  }
  run.require();
  return run.bytes_to_share();
}

}  // namespace adasum::detail
