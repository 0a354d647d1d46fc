// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "../../core/waiting.hpp"

namespace adasum::detail::threads {

/// A message that waits for its receiver. It belongs to the sender, which waits until it is taken.
struct posted_message {
  int peer;
  std::span<const std::byte> bytes;
  posted_message* next = nullptr;
  bool taken = false;
};

/// Messages from one rank to another, in the order of sending. Linked, so that sending allocates nothing.
class message_queue {
 public:
  bool empty() const { return first_ == nullptr; }
  void push(posted_message* message) {
    (first_ ? last_->next : first_) = message;
    last_ = message;
  }
  posted_message* pop() { return std::exchange(first_, first_->next); }
  void clear() { first_ = nullptr; }
  bool contains(const posted_message* message) const {
    const auto* at = first_;
    while (at != nullptr && at != message) at = at->next;
    return at != nullptr;
  }

 private:
  posted_message* first_ = nullptr;
  posted_message* last_ = nullptr;
};

/// What other ranks have for this one.
struct mailbox {
  std::condition_variable changed;    // something has happened that this rank may be waiting for
  std::vector<message_queue> queues;  // one for each sender
  std::chrono::duration<double> owners_timeout = no_timeout;
  bool owner_has_left = false;
  int owner_gave_up_on = -1;  // the rank for which it has waited in vain, and left
};

/// What went wrong in an exchange, if anything did: the last of it. Not a text, which might find no memory while another
/// rank waits.
struct exchange_problem {
  enum { nothing, other_size, has_left, gave_up, late, not_copied } what = nothing;
  int peer = 0;
  std::size_t sent = 0, expected = 0;  // bytes
  std::exception_ptr not_copied_because{};
  int for_rank = -1;                        // gave_up: for which the peer has waited
  std::chrono::duration<double> timeout{};  // late

  std::string text() const {
    const auto name = "rank " + std::to_string(peer);
    if (what == late) return joined({name, " has not come within ", detail::text_of(timeout)});
    if (what == gave_up) return joined({name, " has waited in vain for rank ", for_rank, ", and left"});
    if (what == has_left) return joined({name, " has left: its last thread_communicator has been destroyed"});
    if (what == other_size)
      return joined({name, " sent ", detail::counted(sent, "byte"), " instead of the expected ", expected});
    try {
      std::rethrow_exception(not_copied_because);
    } catch (const std::exception& failure) {
      return failure.what();
    } catch (...) {
      return "a message could not be copied";
    }
  }
};

class group;

/// How far one exchange of one rank has come. Its vectors are kept from one exchange to the next, so that none allocates
/// once they have grown to its size.
struct pending_messages {
  threads::group* group = nullptr;  // null before the first exchange
  int rank = 0;
  std::vector<posted_message> sent;
  std::vector<incoming> expected;
  std::size_t received = 0;  // so many of `expected` have arrived, or never will
  std::size_t taken = 0;     // so many of `sent` have been taken, or never will be
  exchange_problem problem;

  /// Memory for so many messages, each way.
  void reserve(std::size_t messages) {
    sent.reserve(messages);
    expected.reserve(messages);
  }
};

}  // namespace adasum::detail::threads
