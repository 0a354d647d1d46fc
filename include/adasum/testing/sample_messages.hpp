// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
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
    const auto bytes = place(message.contents());
    out_.push_back({message.to, bytes, where_, withheld});
  }
  /// @param arrives  whether it will; otherwise the buffer may hold anything
  void receive(const sample_message& message, bool arrives = true) {
    const auto bytes = place(std::vector<std::byte>(message.bytes));
    in_.push_back({message.from, bytes, where_});
    expected_.push_back({message, arrives});
  }

  std::span<const outgoing> out() const { return out_; }
  std::span<const incoming> in() const { return in_; }

  /// What is wrong with what was received; empty if nothing is.
  std::string problem() {
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const auto& [message, arrives] = expected_[i];
      const auto [found, behind] = received(in_[i]);
      const auto wanted = message.contents();
      if (behind) return joined({"something is written past the end of the buffer of ", message.described()});
      if (arrives && !wanted.empty() && std::memcmp(found.data(), wanted.data(), wanted.size()) != 0)
        return joined({message.described(), " arrives with other contents"});
    }
    return {};
  }

 private:
  struct expectation {
    sample_message message;
    bool arrives;
  };
  struct contents {
    std::vector<std::byte> bytes;
    bool behind;  ///< whether what follows has changed
  };
  static constexpr auto mark = std::byte{0x5a};
  static constexpr std::size_t guard = 64;

  /// @return where the bytes lie, followed by some that nobody may touch
  std::span<std::byte> place(std::vector<std::byte> bytes) {
    const auto count = bytes.size();
    bytes.resize((count + sizeof(T) - 1) / sizeof(T) * sizeof(T) + guard, mark);
    std::ranges::fill(std::span(bytes).subspan(count), mark);
    if (where_ == memory_kind::host) {
      on_host_.push_back(std::move(bytes));
      return std::span(on_host_.back()).first(count);
    }
    std::vector<T> elements(bytes.size() / sizeof(T), from_double<T>(0));
    std::memcpy(static_cast<void*>(elements.data()), bytes.data(), bytes.size());
    in_space_.emplace_back(space_, elements);
    return {reinterpret_cast<std::byte*>(in_space_.back().at(0)), count};
  }

  contents received(const incoming& buffer) {
    std::vector<std::byte> all;
    for (const auto& memory : on_host_)
      if (memory.data() == buffer.bytes.data()) all = memory;
    for (auto& memory : in_space_)
      if (reinterpret_cast<std::byte*>(memory.at(0)) == buffer.bytes.data()) {
        const auto elements = memory.read();
        const auto bytes = std::as_bytes(std::span(elements));
        all.assign(bytes.begin(), bytes.end());
      }
    const auto rest = std::span(all).subspan(buffer.bytes.size());
    const bool behind = std::ranges::any_of(rest, [](std::byte one) { return one != mark; });
    all.resize(buffer.bytes.size());
    return {std::move(all), behind};
  }

  const Space& space_;
  memory_kind where_;
  std::deque<std::vector<std::byte>> on_host_;
  std::deque<space_array<T, Space>> in_space_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
  std::vector<expectation> expected_;
};

}  // namespace adasum::detail
