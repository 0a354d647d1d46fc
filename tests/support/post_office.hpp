// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace adasum::test {

/// What communicators of threads are made of: a queue of copied messages for every two ranks, and shared memory.
class post_office {
 public:
  explicit post_office(int ranks) : size_(ranks), mailboxes_(static_cast<std::size_t>(ranks * ranks)) {}

  int size() const { return size_; }

  void send(int from, int to, std::span<const std::byte> bytes) {
    const std::scoped_lock lock(mutex_);
    mailbox(from, to).emplace(bytes.begin(), bytes.end());
    delivered_.notify_all();
  }

  /// The next message; none if it is not there and the caller does not want to wait for it.
  std::optional<std::vector<std::byte>> receive(int from, int to, bool waits) {
    std::unique_lock lock(mutex_);
    auto& letters = mailbox(from, to);
    if (waits) delivered_.wait(lock, [&] { return !letters.empty(); });
    if (letters.empty()) return {};
    auto letter = std::move(letters.front());
    letters.pop();
    return letter;
  }

  /// Zeroed memory on cache lines of their own, for each rank: those of the first rank to come with its number'th call.
  struct memory {
    struct alignas(64) line {
      std::byte bytes[64];
    };
    std::size_t lines_each;
    std::vector<line> lines;
    std::size_t bytes() const { return lines_each * sizeof(line); }
    std::byte* of(std::size_t rank) { return lines[rank * lines_each].bytes; }
  };
  std::shared_ptr<memory> share(std::size_t number, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    auto& block = blocks_[number];
    if (!block) {
      const auto each = bytes / sizeof(memory::line) + 1;
      block = std::make_shared<memory>(memory{each, std::vector<memory::line>(each * static_cast<std::size_t>(size_))});
    }
    return block;
  }

 private:
  std::queue<std::vector<std::byte>>& mailbox(int from, int to) {
    return mailboxes_[static_cast<std::size_t>(from * size_ + to)];
  }

  int size_;
  std::mutex mutex_;
  std::condition_variable delivered_;
  std::map<std::size_t, std::shared_ptr<memory>> blocks_;
  std::vector<std::queue<std::vector<std::byte>>> mailboxes_;
};

/// A communicator for each rank of a group: Comm(office, rank, arguments...).
template <class Comm, class... Arguments>
std::vector<Comm> group_of(int size, const Arguments&... arguments) {
  const auto office = std::make_shared<post_office>(size);
  std::vector<Comm> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(office, rank, arguments...);
  return ranks;
}

}  // namespace adasum::test
