// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/message.hpp"
#include "space_samples.hpp"

namespace adasum::detail {

/// One message of a check, as both its ranks know it.
struct sample_message {
  int from, to;
  std::size_t bytes;
  unsigned number = 0;  ///< tells messages of the same two ranks apart

  /// The contents follow from the rest.
  std::vector<std::byte> contents() const {
    auto state = static_cast<std::uint32_t>(from * 7919 + to * 104729) + number * 15485863u + 1u;
    std::vector<std::byte> list(bytes);
    for (std::size_t i = 0; i < bytes; i += sizeof state) {
      state = state * 1664525u + 1013904223u;
      std::memcpy(list.data() + i, &state, std::min(sizeof state, bytes - i));
    }
    return list;
  }
  std::string described() const {
    return joined({"a message of ", counted(bytes, "byte"), " from rank ", from, " to rank ", to});
  }
};

/// The messages of one exchange of one rank, with their memory: of the host, or of a space.
/// @tparam T  elements that the space offers
template <scalar T, class Space>
class sample_exchange {
 public:
  explicit sample_exchange(const Space& space, memory_kind where = memory_kind::host) : space_(space), where_(where) {}

  void send(const sample_message& message, bool withheld = false) {
    out_.push_back({message.to, place(message.contents()), where_, withheld});
  }
  /// @param arrives  whether it will; otherwise the buffer may hold anything
  void receive(const sample_message& message, bool arrives = true) {
    in_.push_back({message.from, place(std::vector<std::byte>(message.bytes)), where_});
    expected_.push_back({message, arrives, &buffers_.back()});
  }

  std::span<const outgoing> out() const { return out_; }
  std::span<const incoming> in() const { return in_; }

  /// What is wrong with what was received; empty if nothing is.
  std::string problem() {
    for (const auto& [message, arrives, where] : expected_) {
      const auto elements = where->of_space ? where->of_space->read() : where->of_host;
      const auto found = std::as_bytes(std::span(elements));
      const auto wanted = message.contents();
      if (std::ranges::any_of(found.subspan(wanted.size()), [](std::byte one) { return one != mark; }))
        return joined({"something is written past the end of the buffer of ", message.described()});
      if (arrives && !wanted.empty() && std::memcmp(found.data(), wanted.data(), wanted.size()) != 0)
        return joined({message.described(), " arrives with other contents"});
    }
    return {};
  }

 private:
  struct buffer {
    std::vector<T> of_host;
    std::optional<space_array<T, Space>> of_space;
  };
  struct expectation {
    sample_message message;
    bool arrives;
    buffer* where;
  };
  static constexpr auto mark = std::byte{0x5a};
  static constexpr std::size_t guard = 64;

  /// @return where the bytes lie, followed by some that nobody may touch
  std::span<std::byte> place(std::vector<std::byte> bytes) {
    const auto count = bytes.size();
    bytes.resize((count + sizeof(T) - 1) / sizeof(T) * sizeof(T) + guard, mark);
    auto& made = buffers_.emplace_back();
    made.of_host.resize(bytes.size() / sizeof(T), from_double<T>(0));
    std::memcpy(static_cast<void*>(made.of_host.data()), bytes.data(), bytes.size());
    if (where_ == memory_kind::space) made.of_space.emplace(space_, made.of_host);
    return {reinterpret_cast<std::byte*>(made.of_space ? made.of_space->at(0) : made.of_host.data()), count};
  }

  const Space& space_;
  memory_kind where_;
  std::deque<buffer> buffers_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
  std::vector<expectation> expected_;
};

}  // namespace adasum::detail
