// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ranks.hpp"

namespace adasum::test::model {

/// A mixing function of 64 bits: Steele, Lea, Flood, 2014 (splitmix64).
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The memory model of C++20 for atomic loads and stores, where every location is written by one rank only (which is
/// checked), and loads do not take effect after later stores of the same rank (as in RC11: Lahav, Vafeiadis, Kang, Hur, Dreyer,
/// 2017; the operational form is that of Kang et al., 2017, without promises).
///
/// A store appends a message to its location. A load may read any message that is not older than the newest one which the
/// rank knows of: because it has read or written it, or because it happens before. A release store's message carries all that
/// its rank knows, and an acquire load of it adds that to what the reader knows. For accesses that are not atomic, a rank
/// knows how far each other rank has got, in epochs that end with each of its stores: an access must know of the last write,
/// and a write of all reads, too. Otherwise, it is a data race.
///
/// Sequentially consistent accesses are acquire and release, and their total order is the order of turns: such a load reads
/// no message that is older than one which such an access has stored or read before.
class memory {
 public:
  static constexpr std::size_t most_locations = 64, words = shared_bytes / 8;

  void reset(std::size_t ranks) {
    ranks_ = ranks;
    for (auto& one : locations_) one.messages.assign(1, {});
    for (auto& one : locations_) one.writer = most_ranks;
    known_ = {};
    in_total_order_ = {};
    for (std::size_t rank = 0; rank < most_ranks; ++rank) known_[rank].happened[rank] = 1;
    for (const auto word : touched_) cells_[word] = {};
    touched_.clear();
    hash_of_cells_ = 0;
    problem_.clear();
  }

  const std::string& problem() const { return problem_; }
  void note(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }

  /// A number for each atomic location; the same one from reset to reset.
  std::size_t location_of(std::size_t word) {
    if (location_at_[word] == 0) {
      word_of_.push_back(word);
      if (word_of_.size() > most_locations) std::abort();
      location_at_[word] = static_cast<std::uint8_t>(word_of_.size());
      locations_.push_back({});
      locations_.back().messages.assign(1, {});
    }
    if (cells_[word].is_used()) note("an access to an atomic that is not atomic");
    return location_at_[word] - std::size_t{1};
  }

  void store(std::size_t rank, std::size_t location, std::uint64_t value, std::memory_order order) {
    auto& at = locations_[location];
    if (at.writer == most_ranks) at.writer = rank;
    if (at.writer != rank) note("two ranks write the same atomic");
    auto& known = known_[rank];
    const auto number = static_cast<std::uint8_t>(at.messages.size());
    known.seen[location] = number;
    message one{value, {}, 0};
    if (order == std::memory_order_seq_cst) in_total_order_[location] = number;
    if (order != std::memory_order_relaxed)
      one.carried = known;
    else
      one.carried.seen[location] = number;
    one.hash = mixed(hash_of(one.carried), value);
    at.messages.push_back(one);
    ++known.happened[rank];
  }
  std::size_t oldest(std::size_t rank, std::size_t location, std::memory_order order) const {
    const auto known = known_[rank].seen[location];
    return order == std::memory_order_seq_cst ? std::max(known, in_total_order_[location]) : known;
  }
  std::size_t newest(std::size_t location) const { return locations_[location].messages.size() - 1; }
  bool is_newest_in_order(std::size_t location) const { return in_total_order_[location] == newest(location); }
  std::size_t writer(std::size_t location) const { return locations_[location].writer; }
  std::uint64_t load(std::size_t rank, std::size_t location, std::size_t number, std::memory_order order) {
    const auto& read = locations_[location].messages[number];
    auto& known = known_[rank];
    known.seen[location] = std::max(known.seen[location], static_cast<std::uint8_t>(number));
    if (order == std::memory_order_seq_cst)
      in_total_order_[location] = std::max(in_total_order_[location], static_cast<std::uint8_t>(number));
    if (order != std::memory_order_relaxed) known.join(read.carried);
    return read.value;
  }
  /// Of a message that the rank has read.
  std::uint64_t value(std::size_t location, std::size_t number) const {
    return locations_[location].messages[number].value;
  }

  /// An access that is not atomic.
  /// @return whether it is a data race
  bool access(std::size_t rank, std::size_t word, bool writes) {
    if (location_at_[word] != 0) note("an access to an atomic that is not atomic");
    auto& cell = cells_[word];
    if (cell.is_used())
      hash_of_cells_ ^= hash_of(word, cell);
    else
      touched_.push_back(word);
    const auto& knows = known_[rank].happened;
    bool races = cell.writer < most_ranks && cell.writer != rank && cell.written > knows[cell.writer];
    if (writes) {
      for (std::size_t other = 0; other < ranks_; ++other)
        races = races || (other != rank && cell.read[other] > knows[other]);
      cell = {rank, knows[rank], {}};
    } else {
      cell.read[rank] = knows[rank];
    }
    hash_of_cells_ ^= hash_of(word, cell);
    return races;
  }

  /// Of all that may have an influence on what is to come. @param at_work  whether a rank has not ended yet
  template <class AtWork>
  std::uint64_t hash(const AtWork& at_work) const {
    std::uint64_t all = hash_of_cells_;
    for (std::size_t rank = 0; rank < ranks_; ++rank) all = mixed(all, hash_of(known_[rank]));
    for (std::size_t location = 0; location < locations_.size(); ++location) {
      const auto& at = locations_[location];
      if (at.messages.size() == 1) continue;
      auto first = at.messages.size();
      for (std::size_t rank = 0; rank < ranks_; ++rank)
        if (rank != at.writer && at_work(rank)) first = std::min<std::size_t>(first, known_[rank].seen[location]);
      for (auto number = first; number < at.messages.size(); ++number)
        all = mixed(all, mixed(at.messages[number].hash, location << 8 | number));
      all = mixed(all, in_total_order_[location]);
    }
    return all;
  }

 private:
  using epoch = std::uint16_t;

  /// What a rank knows, or a message tells.
  struct knowledge {
    std::array<std::uint8_t, most_locations> seen{};  // of each location: the number of a message
    std::array<epoch, most_ranks> happened{};         // of each rank: all that it did in the epochs up to this one
    void join(const knowledge& other) {
      for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = std::max(seen[i], other.seen[i]);
      for (std::size_t i = 0; i < happened.size(); ++i) happened[i] = std::max(happened[i], other.happened[i]);
    }
  };
  struct message {
    std::uint64_t value = 0;
    knowledge carried{};
    std::uint64_t hash = 0;
  };
  struct location_state {
    std::vector<message> messages;
    std::size_t writer = most_ranks;
  };
  /// Of a word that is not atomic: who wrote it last, and who has read it since.
  struct cell_state {
    std::size_t writer = most_ranks;
    epoch written = 0;
    std::array<epoch, most_ranks> read{};
    bool is_used() const { return writer < most_ranks || read != decltype(read){}; }
  };

  static std::uint64_t hash_of(const knowledge& one) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < most_locations; i += 8) {
      std::uint64_t eight = 0;
      for (std::size_t k = 0; k < 8; ++k) eight = eight << 8 | one.seen[i + k];
      if (eight != 0) all = mixed(all, mixed(i, eight));
    }
    for (const auto happened : one.happened) all = mixed(all, happened);
    return all;
  }
  static std::uint64_t hash_of(std::size_t word, const cell_state& one) {
    auto all = mixed(word, one.writer << 16 | one.written);
    for (const auto read : one.read) all = mixed(all, read);
    return all;
  }

  std::size_t ranks_ = 0;
  std::array<std::uint8_t, words> location_at_{};
  std::vector<std::size_t> word_of_;
  std::vector<location_state> locations_;
  std::array<knowledge, most_ranks> known_{};
  std::array<std::uint8_t, most_locations> in_total_order_{};  // of each location: the newest message
  std::array<cell_state, words> cells_{};
  std::vector<std::size_t> touched_;
  std::uint64_t hash_of_cells_ = 0;
  std::string problem_;
};

}  // namespace adasum::test::model
