// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/message.hpp"
#include "../core/optional_members.hpp"
#include "../detail/references/communicator_ref.hpp"
#include "../detail/references/erased.hpp"
#include "sample_messages.hpp"
#include "shared_window.hpp"
#include "taken_members.hpp"

namespace adasum {
namespace detail {

/// What check_communicator does with messages. A rank that finds something goes on, so that no other waits for it.
template <scalar T, class Comm, class Space>
class message_check {
 public:
  message_check(const Comm& comm, const Space& space)
      : comm_(comm), space_(space), rank_(comm.rank()), size_(comm.size()), ref_(ref_to_communicator(space, comm)) {
    if (ref_.can_post()) pending_ = ref_.make_pending();
  }

  /// @return what is wrong first, seen from this rank; empty if nothing is
  std::string run() {
    const Comm copy = comm_;
    if (rank_ < 0 || rank_ >= size_ || copy.rank() != rank_ || copy.size() != size_)
      return joined({"rank() is ", rank_, ", size() is ", size_});
    if constexpr (has_state<Comm>)
      if (&copy.state() != &comm_.state()) return "state() of a copy is another object";
    if (size_ == 1) return {};
    check_all(way::exchange);
    if (ref_.can_post()) {
      for (const auto how : {way::test, way::wait, way::some_post}) check_all(how);
      check_test_returns();
    }
    return problem_;
  }

 private:
  /// How an exchange is carried out.
  enum class way { exchange, test, wait, some_post };
  using exchange_type = sample_exchange<T, Space>;

  void note(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  int next(int distance) const { return (rank_ + distance) % size_; }

  void check_all(way how) {
    check_neighbours(how);
    check_all_peers(how, memory_kind::host);
    check_all_peers(how, memory_kind::space);
    check_one_way(how);
    check_failures(how);
    check_neighbours(how);  // and goes on after that
  }

  /// @return whether a communication_error was thrown
  bool carry(exchange_type& messages, way how) {
    try {
      if (how == way::exchange || (how == way::some_post && rank_ % 2 == 0)) {
        ref_.exchange(messages.out(), messages.in());
        return false;
      }
      post(messages);
      if (how == way::test)
        while (!ref_.test(pending_.get())) std::this_thread::yield();
      ref_.wait(pending_.get());
    } catch (const communication_error&) {
      return true;
    } catch (const std::exception& other) {
      note(std::string("an exchange throws something other than a communication_error: ") + other.what());
    }
    return false;
  }
  /// The spans are there during the call only.
  void post(const exchange_type& messages) {
    const std::vector<outgoing> out(messages.out().begin(), messages.out().end());
    const std::vector<incoming> in(messages.in().begin(), messages.in().end());
    ref_.post(out, in, pending_.get());
  }
  void carry_well(exchange_type& messages, way how, const std::string& what) {
    if (carry(messages, how))
      note("a communication_error, though nobody failed: " + what);
    else if (const auto problem = messages.problem(); !problem.empty())
      note(problem + ": " + what);
  }

  /// Each rank sends to one and receives from another; short and long messages.
  void check_neighbours(way how) {
    for (int distance = 1; distance < std::min(size_, 5); ++distance)
      for (const std::size_t bytes : {0u, 1u, 8u, 1000u, distance == 1 ? 300'000u : 3000u}) {
        exchange_type messages(space_);
        messages.send({rank_, next(distance), bytes});
        messages.receive({next(size_ - distance), rank_, bytes});
        carry_well(messages, how, "each rank sends to the one that is " + std::to_string(distance) + " further");
      }
  }

  /// All at once, several messages for each, some of the same size: they arrive in order.
  void check_all_peers(way how, memory_kind where) {
    exchange_type messages(space_, where);
    for (unsigned number = 0; number < 5; ++number)
      for (int distance = 1; distance < size_; ++distance) {
        const std::size_t bytes = number == 2 ? 0 : number == 4 ? 40'000 : 24;
        messages.send({rank_, next(distance), bytes, number});
        messages.receive({next(distance), rank_, bytes, number});
      }
    carry_well(messages, how, "five messages between every two ranks");
  }

  /// Some ranks only send, some only receive, and some have nothing to do with an exchange.
  void check_one_way(way how) {
    for (const int source : {0, size_ - 1}) {
      exchange_type messages(space_);
      if (rank_ == source)
        for (int peer = 0; peer < size_; ++peer)
          if (peer != source) messages.send({source, peer, 300});
      if (rank_ != source) messages.receive({source, rank_, 300});
      carry_well(messages, how, "one rank sends to all others");
    }
    for (int lower = 0; lower + 1 < size_; ++lower) {
      if (rank_ != lower && rank_ != lower + 1) continue;
      const int peer = rank_ == lower ? lower + 1 : lower;
      exchange_type messages(space_);
      messages.send({rank_, peer, 80});
      messages.receive({peer, rank_, 80});
      carry_well(messages, how, "two ranks after the other");
    }
  }

  /// Rank 0 withholds its messages, or sends too much or too little; the others' arrive all the same.
  void check_failures(way how) {
    enum class fault { withheld, longer, shorter };
    for (const auto kind : {fault::withheld, fault::longer, fault::shorter}) {
      exchange_type messages(space_);
      for (int distance = 1; distance < size_; ++distance) {
        const int peer = next(distance);
        const std::size_t wrong = kind == fault::longer ? 80 : 40;
        messages.send({rank_, peer, rank_ == 0 && kind != fault::withheld ? wrong : 64},
                      rank_ == 0 && kind == fault::withheld);
        messages.receive({peer, rank_, 64}, peer != 0);
      }
      const bool threw = carry(messages, how);
      const std::string what = kind == fault::withheld ? "is withheld" : "does not have the size of its buffer";
      if (rank_ != 0 && !threw) note("no communication_error where a message " + what);
      if (rank_ == 0 && threw) note("a communication_error on the rank whose own message " + what);
      if (const auto problem = messages.problem(); !problem.empty()) note(problem + ", beside a message that " + what);
    }
  }

  /// Rank 1 answers late. Rank 0 must get its answers from post() and test() at once. A machine may be busy: it is
  /// enough that they do so once.
  void check_test_returns() {
    using clock = std::chrono::steady_clock;
    constexpr auto delay = std::chrono::milliseconds(100);
    bool blocked = true;
    for (unsigned trial = 0; trial < 3; ++trial) {
      exchange_type question(space_), answer(space_);
      const sample_message asks{0, 1, 8, trial}, answers{1, 0, 8, trial};
      if (rank_ == 0) {
        question.send(asks);
        question.receive(answers);
        auto longest = clock::duration::zero();
        const auto timed = [&](const auto& call) {
          const auto begin = clock::now();
          const bool ended = call();
          longest = std::max(longest, clock::now() - begin);
          return ended;
        };
        try {
          timed([&] { return post(question), false; });
          while (!timed([&] { return ref_.test(pending_.get()); })) std::this_thread::yield();
          ref_.wait(pending_.get());
        } catch (const std::exception& problem) {
          note(std::string("post() or test() throws: ") + problem.what());
        }
        note(question.problem());
        blocked = blocked && longest > delay / 2;
      } else if (rank_ == 1) {
        question.receive(asks);
        answer.send(answers);
        carry_well(question, way::exchange, "a question");
        std::this_thread::sleep_for(delay);
        carry_well(answer, way::exchange, "an answer");
      }
    }
    if (rank_ == 0 && blocked) note("post() or test() waits for another rank");
  }

  const Comm& comm_;
  const Space& space_;
  int rank_, size_;
  std::string problem_;
  communicator_ref ref_;
  owned_object pending_ = no_object();
};

}  // namespace detail

/// Checks what a communicator does. Collective: all its ranks call this, with nothing else in flight.
///
///   * messages arrive whole and in order: empty and long ones, several between two ranks, from all to all, from
///     one to all, and between some ranks while others are elsewhere; in memory of the host and of the space;
///   * one that is withheld, or has another size than its buffer, throws a communication_error where it arrives; the
///     others arrive all the same, and later exchanges work;
///   * the same for post(), with test() and with wait(), also against exchange() on other ranks; test() does not wait;
///   * share(): the memory is zeroed, aligned, apart from others', seen by all its ranks, and good for atomics; these are all
///     ranks if nodes() says one node, or is absent;
///   * state(): copies have the same one.
///
/// A communicator that loses a message may wait for ever. Does not see what happens to ranks that end in the middle.
/// @tparam T  elements that the space offers
/// @return the names of the optional members that the library takes
/// @throws bad_input  saying what this rank found wrong first; the others may have found nothing
template <scalar T = float, execution_space<T> Space, communicator_for<Space> Comm>
std::vector<std::string> check_communicator(const Comm& comm, const Space& space) {
  auto problem = detail::message_check<T, Comm, Space>(comm, space).run();
  if constexpr (shared_memory_communicator<Comm>) {
    const auto of_memory = detail::shared_window_check<Comm, Space>(comm, space).run();
    if (problem.empty()) problem = of_memory;
  }
  if (!problem.empty()) throw bad_input({"adasum::check_communicator: rank ", comm.rank(), ": ", problem});
  return detail::taken_members_of_communicator<Comm, Space>();
}

}  // namespace adasum
