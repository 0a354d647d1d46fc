// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "../../core/waiting_time.hpp"

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

}  // namespace adasum::detail::threads
