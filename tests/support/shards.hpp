// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/parts.hpp>
#include <adasum/core/segments.hpp>

#include "random_gradients.hpp"

namespace adasum::test {

/// A way to cut gradients into shards, none of which the library knows.
class cutting {
 public:
  enum class by {
    flat,      ///< each shard is a stretch of the whole gradient (FSDP): segments end up in one shard or several
    segments,  ///< each segment is cut into parts that grow (tensor parallelism)
    last,      ///< the last shard has everything, the others nothing
  };

  cutting(by how, std::vector<std::size_t> lengths, std::vector<std::size_t> replicated, std::size_t shards)
      : how_(how), whole_(lengths), replicated_(std::move(replicated)), shards_(shards) {}

  const segments& whole() const { return whole_; }
  const std::vector<std::size_t>& replicated() const { return replicated_; }
  std::size_t shards() const { return shards_; }

  /// Where shard s has its part of segment k: elements of the whole gradient.
  index_range part(std::size_t k, std::size_t s) const {
    const index_range all{whole_.offset(k), whole_.offset(k + 1)};
    if (std::ranges::find(replicated_, k) != replicated_.end()) return all;
    const auto share = [&](std::size_t length, std::size_t i) { return length * i * i / (shards_ * shards_); };
    switch (how_) {
      case by::flat: {
        const auto begin = std::clamp(share(whole_.total(), s), all.begin, all.end);
        return {begin, std::clamp(share(whole_.total(), s + 1), begin, all.end)};
      }
      case by::segments: return {all.begin + share(all.size(), s), all.begin + share(all.size(), s + 1)};
      case by::last: break;
    }
    return s + 1 == shards_ ? all : index_range{all.end, all.end};
  }

  segments segments_of(std::size_t s) const {
    std::vector<std::size_t> lengths;
    for (std::size_t k = 0; k < whole_.size(); ++k) lengths.push_back(part(k, s).size());
    return segments(lengths);
  }
  /// Shard s of a whole gradient.
  template <class T>
  std::vector<T> shard_of(const std::vector<T>& gradient, std::size_t s) const {
    std::vector<T> found;
    for (std::size_t k = 0; k < whole_.size(); ++k) {
      const auto [begin, end] = part(k, s);
      found.insert(found.end(), gradient.begin() + static_cast<std::ptrdiff_t>(begin),
                   gradient.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return found;
  }

 private:
  by how_;
  segments whole_;
  std::vector<std::size_t> replicated_;
  std::size_t shards_;
};

/// Who has what: replica by replica, shard by shard, or in a random order.
enum class numbering { replicas_first, shards_first, random };
inline std::vector<shard> places(std::size_t replicas, const cutting& cut, numbering how) {
  const auto shards = cut.shards();
  std::vector<shard> found;
  for (std::size_t i = 0; i < replicas * shards; ++i) {
    const bool by_shard = how == numbering::shards_first;
    found.push_back({static_cast<int>(by_shard ? i % replicas : i / shards),
                     static_cast<int>(by_shard ? i / replicas : i % shards), cut.replicated()});
  }
  if (how == numbering::random) std::ranges::shuffle(found, std::mt19937(static_cast<unsigned>(replicas)));
  return found;
}

/// Gradients of small whole numbers: their inner products are exact, however they are added.
template <class T>
std::vector<std::vector<T>> whole_numbers(std::size_t count, std::size_t length, std::size_t seed) {
  auto gradients = random_gradients<T>(count, length, seed);
  for (auto& gradient : gradients)
    for (auto& x : gradient) x = static_cast<T>(std::clamp(std::round(static_cast<double>(x) * 4), -9.0, 9.0));
  return gradients;
}

}  // namespace adasum::test
