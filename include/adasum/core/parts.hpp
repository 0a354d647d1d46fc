// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <type_traits>
#include <vector>

#include "error.hpp"
#include "segments.hpp"

namespace adasum {

/// How the result of a reduce_scatter is divided among the ranks: the first elements go to rank 0, the next ones to rank 1,
/// and so on. There is one part for each rank. Parts may be empty, and a segment may extend over several parts.
///
///     adasum::parts{1024, 0, 4096};                       // lengths, of any integer types
///     adasum::parts(lengths.begin(), lengths.end());      // any iterators over integers
///     adasum::parts(lengths);                             // any range of integers
class parts {
 public:
  /// No part.
  parts() = default;

  /// @throws bad_input  a negative length, or the total overflows
  template <std::integral Length>
  parts(std::initializer_list<Length> lengths) : parts(lengths.begin(), lengths.end()) {}

  /// Lengths of several types. @throws bad_input as above.
  template <std::integral... Lengths>
    requires(sizeof...(Lengths) > 1)
  parts(Lengths... lengths) {
    (append(lengths), ...);
  }

  /// @throws bad_input as above.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
    requires std::integral<std::iter_value_t<Iterator>>
  parts(Iterator first, Sentinel last) {
    for (; first != last; ++first) append(*first);
  }

  /// @throws bad_input as above.
  template <class Range>
    requires(!std::same_as<std::remove_cvref_t<Range>, parts> && detail::range_of_lengths<Range>)
  explicit parts(Range&& lengths)
      : parts(detail::range_access::begin_of(lengths), detail::range_access::end_of(lengths)) {}

  /// How many: one for each rank.
  std::size_t size() const { return offsets_.size() - 1; }
  /// Elements of all of them.
  std::size_t total() const { return offsets_.back(); }
  /// Where the part of a rank lies in the gradient. @pre rank < size()
  index_range of_rank(std::size_t rank) const { return {offsets_[rank], offsets_[rank + 1]}; }

  /// size() + 1 boundaries.
  std::span<const std::size_t> offsets() const { return {offsets_.data(), offsets_.size()}; }

  friend bool operator==(const parts&, const parts&) = default;

 private:
  void append(std::integral auto length) {
    detail::append_length(offsets_, length, "adasum::parts", "the part of rank");
  }

  std::vector<std::size_t> offsets_{0};
};

/// Which part of a gradient a rank has, if each gradient is split over several ranks: sharded parameters (FSDP, ZeRO),
/// tensor, expert and pipeline parallelism, domain decomposition. The ranks of one communicator are then
///
///     replicas × shards:   rank (r, s) has shard s of the gradient of replica r
///
/// and each rank combines its shard with the same shards of the other replicas, with weights that all shards of a replica
/// share, because inner products are added over the shards too. So the result consists of the shards of what the rule makes
/// of the whole gradients.
///
///     adasum::adasum_allreduce(exec, comm, mine, segments, adasum::shard{.replica = rank / 4, .index = rank % 4});
///
/// The ranks may be numbered in any order: they tell each other what they have when a plan is made. All replicas are cut in
/// the same way, into one or more shards. Shards may differ in length, and may be empty. Segment k of each shard is the
/// shard's part of one and the same segment of the whole gradient, so all ranks have the same number of segments, of
/// which any may be empty.
struct shard {
  int replica = 0;  ///< whose gradient: from 0 to the number of replicas - 1
  int index = 0;    ///< which part of it: from 0 to the number of shards - 1
  /// The segments that every shard of a replica holds completely, with equal numbers in them, such as the parameters of a
  /// layer norm under tensor parallelism. They count once in inner products. In ascending order, and the same on all ranks.
  std::vector<std::size_t> replicated{};

  friend bool operator==(const shard&, const shard&) = default;
};

}  // namespace adasum
