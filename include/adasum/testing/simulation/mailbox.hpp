// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "../../core/message.hpp"
#include "../../core/text.hpp"
#include "system_memory.hpp"

namespace adasum::detail::simulated {

/// One message on its way.
struct letter {
  int to = 0;
  std::span<const std::byte> bytes;  // the sender's, or the copy
  list<std::byte> copy;
  bool is_copied = false;  // the sender need not wait until it is taken
  bool is_taken = false;
  std::uint64_t arrives = 0;  // the turn from which on it can be received

  void take() {
    is_taken = true;
    bytes = {};
    list<std::byte>().swap(copy);
  }
};

/// Letters from one rank to another, in the order of sending.
struct letter_queue {
  list<letter*> waiting;           // few at a time
  std::uint64_t last_arrival = 0;  // none that follows comes earlier
};

/// All letters of a simulation, between any two of its ranks. They stay until its end, without what was written in them.
class mailbox {
 public:
  explicit mailbox(std::size_t ranks) : ranks_(ranks), queues_(ranks * ranks) {}

  letter_queue& queue(int from, int to) {
    return queues_[static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to)];
  }
  const letter_queue& queue(int from, int to) const { return const_cast<mailbox*>(this)->queue(from, to); }

  letter* make(int to, std::span<const std::byte> bytes, bool is_copied) {
    letters_.push_back(std::allocate_shared<letter>(system_allocator<letter>{}));
    auto& one = *letters_.back();
    one.to = to;
    one.is_copied = is_copied;
    if (is_copied) one.copy.assign(bytes.begin(), bytes.end());
    one.bytes = is_copied ? std::span<const std::byte>(one.copy) : bytes;
    return &one;
  }
  /// Drops letters that lie in the memory of a sender that is gone.
  void drop_uncopied_of(int from) {
    for (std::size_t to = 0; to < ranks_; ++to)
      std::erase_if(queue(from, static_cast<int>(to)).waiting, [](const letter* one) { return !one->is_copied; });
  }

 private:
  std::size_t ranks_;
  list<letter_queue> queues_;
  list<std::shared_ptr<letter>> letters_;
};

/// How far one exchange of one rank has come.
struct exchange {
  enum class problem { nothing, other_size, has_left };

  int rank = 0;
  list<incoming> expected;
  list<letter*> sent;
  std::size_t received = 0, taken = 0;  // so many of these are done with
  bool has_ended = true;
  problem what = problem::nothing;
  int problem_of = 0;

  /// Of whom this rank waits to hear, or who is to take a letter.
  bool is_receiving() const { return received < expected.size(); }
  int awaited() const { return is_receiving() ? expected[received].peer : sent[taken]->to; }
  /// For people: what went wrong.
  std::string text() const {
    return joined({"adasum::simulated_communicator: rank ", rank, ": rank ", problem_of,
                   what == problem::has_left ? " has left" : " sent a message of another size"});
  }
};

}  // namespace adasum::detail::simulated
