// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check_communicator takes communicators that are right (mpi_communicator: tests/communicators/mpi/), and finds planted faults.
#include <doctest/doctest.h>

#include <adasum/communicators/self.hpp>
#include <adasum/communicators/threads.hpp>
#include <adasum/core/communicator_state.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/testing.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/complete_types.hpp"
#include "support/nodes.hpp"
#include "support/ranks.hpp"
#include "support/sizes.hpp"

namespace test_of_testing_communicator {

using namespace adasum;
using namespace adasum::test;

namespace {

enum class fault {
  none,
  wrong_rank,
  other_contents,
  out_of_order,
  short_accepted,    // a message of another size is no error
  throws_another,    // … but of another type
  writes_too_much,   // a long message is written behind the buffer
  stops_at_failure,  // messages behind one of another size are not received
  post_does_not_throw,
  post_blocks,
  test_blocks,
  not_zero,
  not_aligned,
  not_shared,
  one_memory,  // share() gives the same memory each time
  ranks_descend,
  rank_absent,
  all_have_left,
  not_all_share,
  state_of_copy,  // each copy has a state of its own
};

/// Of threads, with a fault.
class faulty_communicator {
 public:
  faulty_communicator(std::shared_ptr<post_office> office, int rank, fault which)
      : office_(std::move(office)), rank_(rank), fault_(which) {}

  int rank() const { return fault_ == fault::wrong_rank ? rank_ + size() : rank_; }
  int size() const { return office_->size(); }

  class pending {
   public:
    bool test() {
      if (fault_ == fault::test_blocks) return wait(), true;
      for (; arrived_ < expected_.size(); ++arrived_) {
        const auto message = comm_->office_->receive(expected_[arrived_].peer, comm_->rank_, false);
        if (!message) return false;
        complete_ &= comm_->take(expected_[arrived_], *message);
      }
      end();
      return true;
    }
    void wait() {
      for (; arrived_ < expected_.size(); ++arrived_)
        complete_ &=
            comm_->take(expected_[arrived_], *comm_->office_->receive(expected_[arrived_].peer, comm_->rank_, true));
      end();
    }

   private:
    friend faulty_communicator;
    void end() {
      if (!std::exchange(complete_, true) && fault_ != fault::post_does_not_throw) comm_->fail();
    }
    const faulty_communicator* comm_ = nullptr;
    fault fault_ = fault::none;
    std::vector<incoming> expected_;
    std::size_t arrived_ = 0;
    bool complete_ = true;
  };

  template <class Space>
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    send(out);
    std::vector<incoming> list(in.begin(), in.end());
    if (fault_ == fault::out_of_order) std::ranges::reverse(list);
    bool complete = true;
    for (const auto& room : list) {
      complete &= take(room, *office_->receive(room.peer, rank_, true));
      if (!complete && fault_ == fault::stops_at_failure) break;
    }
    if (!complete) fail();
  }
  template <class Space>
  void post(const Space& space, std::span<const outgoing> out, std::span<const incoming> in, pending& made) const {
    made.comm_ = this;
    made.fault_ = fault_;
    made.arrived_ = 0;
    if (fault_ == fault::post_blocks) {
      made.expected_.clear();
      return exchange(space, out, in);
    }
    made.expected_.assign(in.begin(), in.end());
    send(out);
  }

  class window {
   public:
    static constexpr bool same_address_space = true;
    window(const faulty_communicator& comm, std::shared_ptr<post_office::memory> block)
        : fault_(comm.fault_), self_(comm.rank_), block_(std::move(block)) {
      for (int r = 0; r < comm.size(); ++r)
        if (fault_ != fault::rank_absent || r != self_) ranks_.push_back(r);
      if (fault_ == fault::ranks_descend) std::ranges::reverse(ranks_);
      if (fault_ == fault::not_zero) *block_->of(static_cast<std::size_t>(self_)) = std::byte{1};
      if (fault_ == fault::not_shared) others_ = std::make_shared<post_office::memory>(*block_);
    }
    std::span<const int> ranks() const { return ranks_; }
    std::byte* of(std::size_t i) const {
      const bool own = static_cast<int>(i) == self_;
      return (others_ && !own ? others_ : block_)->of(i) + (fault_ == fault::not_aligned ? 8 : 0);
    }
    bool has_left(std::size_t) const { return fault_ == fault::all_have_left; }

   private:
    fault fault_;
    int self_;
    std::shared_ptr<post_office::memory> block_, others_;
    std::vector<int> ranks_;
  };
  window share(std::size_t bytes) const {
    // One for all calls, of the most that a call asks for.
    if (fault_ == fault::one_memory) return {*this, office_->share(0, std::max<std::size_t>(bytes, 1 << 17))};
    return {*this, office_->share((*shares_)++, bytes + 64)};
  }
  std::vector<int> nodes() const {
    std::vector<int> all(static_cast<std::size_t>(size()));
    if (fault_ == fault::not_all_share) std::iota(all.begin(), all.end(), 0);
    return all;
  }
  communicator_state& state() const { return fault_ == fault::state_of_copy ? *own_state_.of_copy : *state_; }

 private:
  void send(std::span<const outgoing> out) const {
    for (const auto& message : out) {
      std::vector<std::byte> bytes(message.bytes.begin(), message.bytes.end());
      if (message.withheld) bytes.clear();
      if (fault_ == fault::other_contents && bytes.size() > 1000) bytes.back() ^= std::byte{1};
      office_->send(rank_, message.peer, bytes);
    }
  }
  /// @return whether the message has the size of its buffer
  bool take(const incoming& room, std::span<const std::byte> message) const {
    if (fault_ == fault::writes_too_much && message.size() > room.bytes.size()) {
      std::ranges::copy(message, room.bytes.data());
      return false;
    }
    if (fault_ == fault::short_accepted) {
      std::ranges::copy(message.first(std::min(message.size(), room.bytes.size())), room.bytes.begin());
      return true;
    }
    if (message.size() != room.bytes.size()) return false;
    std::ranges::copy(message, room.bytes.begin());
    return true;
  }
  void fail() const {
    if (fault_ == fault::throws_another) throw std::runtime_error("something else");
    throw communication_error("a message of another size");
  }

  std::shared_ptr<post_office> office_;
  int rank_;
  fault fault_;
  std::shared_ptr<std::size_t> shares_ = std::make_shared<std::size_t>(0);
  std::shared_ptr<communicator_state> state_ = std::make_shared<communicator_state>();
  struct new_for_copies {
    new_for_copies() = default;
    new_for_copies(const new_for_copies&) {}
    new_for_copies& operator=(const new_for_copies&) { return *this; }
    std::shared_ptr<communicator_state> of_copy = std::make_shared<communicator_state>();
  } own_state_;
};

/// What the ranks of a group are told by check_communicator, one text for each that was told something.
template <class Comm, class Space, class... Args>
std::vector<std::string> faults_found(int size, const Space& space, const Args&... args) {
  std::vector<std::string> found;
  for (const auto& rank : on_each(group_of<Comm>(size, args...), [&](const Comm& comm) {
         check_communicator(comm, space);
         return true;
       }))
    if (!rank.value) found.push_back(rank.template message_of<bad_input>().value_or("another exception"));
  return found;
}

void check_found(fault which, const std::string& mentions) {
  CAPTURE(static_cast<int>(which));
  const auto found = faults_found<faulty_communicator>(3, serial_space{}, which);
  REQUIRE_FALSE(found.empty());
  for (const auto& text : found) CHECK_MESSAGE(text.find(mentions) != std::string::npos, text);
}

}  // namespace

TEST_CASE("the library's communicators") {
  CHECK_NOTHROW(check_communicator(self_communicator{}, serial_space{}));
  for (const int size : {1, 2, 3, 5}) {
    CAPTURE(size);
    CHECK_NOTHROW(thread_communicator::run(
        size, [](const thread_communicator& comm) { check_communicator(comm, serial_space{}); }));
  }
  const auto blocks = node_communicator::make_blocks();
  CHECK_NOTHROW(thread_communicator::run(4, [&](const thread_communicator& comm) {
    check_communicator(node_communicator(comm, {0, 1, 0, 1}, blocks), serial_space{});
  }));
}

TEST_CASE("communicators of users that are right, with spaces that have no float among them") {
  for (const int size : few_or_all({1, 3}, {1, 2, 3, 5})) {
    CAPTURE(size);
    const minimal_space<float> space(1);
    CHECK(faults_found<minimal_posting_communicator>(size, space).empty());
    if (size == 5) continue;
    CHECK(faults_found<minimal_communicator>(size, space).empty());
    CHECK(faults_found<minimal_sharing_communicator<true>>(size, space).empty());
    CHECK(faults_found<minimal_sharing_communicator<false>>(size, space).empty());
    CHECK(faults_found<faulty_communicator>(size, space, fault::none).empty());
  }
  const question_counts asked;
  CHECK(faults_found<complete_communicator>(3, serial_space{}, asked).empty());
  using names = std::vector<std::string>;
  on_each(group_of<minimal_communicator>(2), [](const minimal_communicator& comm) {
    CHECK(check_communicator(comm, serial_space{}) == names{});
    return true;
  });
  on_each(group_of<complete_communicator>(2, asked), [](const complete_communicator& comm) {
    CHECK(check_communicator(comm, serial_space{}) == names{"state", "post", "share", "has_left", "progress"});
    return true;
  });
  CHECK(asked.of(asked_for::has_left) > 0);
  CHECK_NOTHROW(thread_communicator::run(
      2, [](const thread_communicator& comm) { check_communicator<double>(comm, minimal_space<double>(1)); }));
}

TEST_CASE("faults in exchanges") {
  check_found(fault::wrong_rank, "rank() is");
  check_found(fault::other_contents, "arrives with other contents");
  check_found(fault::out_of_order, "five messages between every two ranks");
  check_found(fault::short_accepted, "no communication_error where a message is withheld");
  check_found(fault::throws_another, "something other than a communication_error: something else");
  check_found(fault::writes_too_much, "written past the end of the buffer");
  check_found(fault::stops_at_failure, "");
}

TEST_CASE("faults in posted exchanges") {
  check_found(fault::post_does_not_throw, "no communication_error where a message is withheld");
  check_found(fault::post_blocks, "post() or test() waits for another rank");
  check_found(fault::test_blocks, "post() or test() waits for another rank");
}

TEST_CASE("faults in shared memory") {
  check_found(fault::not_zero, "new memory is not zero");
  check_found(fault::not_aligned, "not aligned");
  check_found(fault::not_shared, "does not hold what that rank has written");
  check_found(fault::one_memory, "");
  check_found(fault::ranks_descend, "ranks() are not in ascending order");
  check_found(fault::rank_absent, "lack the calling rank");
  check_found(fault::all_have_left, "has_left()");
  check_found(fault::not_all_share, "nodes() contradict ranks()");
}

TEST_CASE("a state that handles do not share") { check_found(fault::state_of_copy, "state() of a copy"); }

}  // namespace test_of_testing_communicator
