// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "device.hpp"
#include "elements.hpp"
#include "kernel_arguments.hpp"
#include "measure.hpp"
#include "mix.hpp"
#include "on_chip.hpp"
#include "weigh.hpp"
#include "workspace.hpp"

namespace adasum::detail::cuda {

/// Measure, weigh and mix as launches on one stream: nothing here makes the host wait. All pointers are the device's,
/// except where a span of the host's is named. What a step returns lies in the workspace, until the same step is taken
/// again. Copies share the workspace.
class stream_kernels {
 public:
  stream_kernels(cudaStream_t stream, int device)
      : stream_(stream), device_(device), workspace_(std::make_shared<cuda::workspace>()) {}

  cudaStream_t stream() const { return stream_; }
  int device() const { return device_; }

  /// @return gram[k·packed_size(n) + p]
  template <scalar T>
  double* measure(const slice& window, std::span<const T* const> vectors) const {
    const device_scope here(device_);
    const auto n = vectors.size(), entries = packed_size(n), segments = window.segments.size();
    const bool few = n <= most_in_registers;
    const auto& table = tiles<T>(window, few ? 1 : packs_per_thread);
    double* const partials = scratch_in(workspace_->partials, entries * table.count);
    double* const gram = scratch_in(workspace_->gram, entries * segments);
    const auto over_tiles = [&](auto kernel, const auto& list) {
      launch("measure_tiles", kernel, {table.count, threads_per_block}, stream_,
             static_cast<const tile*>(table.tiles.data()), table.count, list, static_cast<int>(n), partials);
    };
    if (table.count > 0) {
      if (n <= 2)
        over_tiles(measure_tiles<format_of<T>, 2>, listed<2>(vectors));
      else if (n <= 4)
        over_tiles(measure_tiles<format_of<T>, 4>, listed<4>(vectors));
      else if (few)
        over_tiles(measure_tiles<format_of<T>, most_in_registers>, listed<most_in_registers>(vectors));
      else
        over_tiles(measure_tiles_of_many<format_of<T>>, addresses<T>(vectors));
    }
    launch("add_tiles", add_tiles<>, {segments * entries, threads_per_block}, stream_,
           static_cast<const double*>(partials), table.count, static_cast<const std::size_t*>(table.first_tile.data()),
           entries, gram);
    return gram;
  }

  /// @param leaves  n numbers: how many gradients each vector combines; null: one
  /// @return weights[k·n + i]
  template <tree_rule Rule>
  double* weigh(const Rule& rule, const double* gram, std::size_t segments, std::size_t n,
                const double* leaves = nullptr) const {
    const device_scope here(device_);
    constexpr unsigned threads = 64;
    double* const weights = scratch_in(workspace_->weights, segments * n);
    double* const trees = scratch_in(workspace_->trees, scratch_for_trees(segments, n));
    launch("weigh_segments", weigh_segments<Rule>, {(segments + threads - 1) / threads, threads}, stream_, rule, gram,
           leaves, segments, n, weights, trees);
    return weights;
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    const device_scope here(device_);
    const auto& table = tiles<T>(window, 1);
    if (table.count == 0) return;
    const auto over_tiles = [&]<class List>(const List& list) {
      launch("mix_tiles", mix_tiles<format_of<T>, List>, {table.count, threads_per_block}, stream_,
             static_cast<const tile*>(table.tiles.data()), list, static_cast<int>(vectors.size()), weights,
             stored(out));
    };
    if (vectors.size() <= 2)
      over_tiles(listed<2>(vectors));
    else if (vectors.size() <= most_in_registers)
      over_tiles(listed<most_in_registers>(vectors));
    else
      over_tiles(addresses<T>(vectors));
  }

  /// All three steps for two vectors in one kernel, if they fit into the registers and the shared memory of the device.
  /// @return whether they do; nothing has been enqueued otherwise
  template <scalar T, tree_rule Rule>
  bool combine_two(const Rule& rule, const slice& window, std::span<const T* const> vectors, T* out) const {
    const device_scope here(device_);
    const auto& table = tiles<T>(window, 1);
    const auto kernel = combine_on_chip<format_of<T>, Rule>;
    const auto limits = workspace_->limits_of(kernel, threads_per_block, blocks_per_multiprocessor, device_);
    const auto blocks = std::min(limits.blocks, table.count);
    if (blocks == 0) return false;
    const auto of_one = (table.count + blocks - 1) / blocks;
    const auto in_shared = of_one > tiles_in_registers ? of_one - tiles_in_registers : 0;
    const auto shared_bytes = in_shared * shared_bytes_per_tile;
    if (shared_bytes > limits.shared_bytes) return false;
    double* const partials = scratch_in(workspace_->partials, 3 * table.count);
    const auto code =
        try_launch(kernel, {blocks, threads_per_block, shared_bytes, true}, stream_, rule,
                   static_cast<const tile*>(table.tiles.data()), table.count,
                   static_cast<const std::size_t*>(table.first_tile.data()), listed<2>(vectors), partials, stored(out));
    if (code == cudaErrorCooperativeLaunchTooLarge) {  // a share of the device only
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check("combine_on_chip", code);
    return true;
  }

  /// to[i] = from[i], rounded to nearest even.
  template <scalar From, scalar To>
  void convert(const From* from, To* to, std::size_t count) const {
    if (count == 0) return;
    const device_scope here(device_);
    launch("convert", cuda::convert<format_of<From>, format_of<To>>, {blocks_for(count), threads_per_block}, stream_,
           stored(from), stored(to), count);
  }

  /// values[i] = Σₖ pieces[k·count + i], in the order of k.
  void add_pieces(const double* pieces, std::size_t number, std::size_t count, double* values) const {
    if (count == 0) return;
    const device_scope here(device_);
    launch("add_pieces", cuda::add_pieces<>, {blocks_for(count), threads_per_block}, stream_, pieces, number, count,
           values);
  }

  /// Memory for weights from elsewhere, in the place of those that weigh() returns.
  double* scratch_for_weights(std::size_t count) const { return scratch_in(workspace_->weights, count); }
  /// Page-locked memory of the host, until the next call.
  double* host_scratch(std::size_t count) const { return workspace_->host_scratch(count); }

 private:
  static std::size_t blocks_for(std::size_t count) { return (count + threads_per_block - 1) / threads_per_block; }

  /// Elements as kernels see them: by their number format.
  template <scalar T>
  static auto stored(const T* elements) {
    return reinterpret_cast<const storage_of<format_of<T>>*>(elements);
  }
  template <scalar T>
    requires(!std::is_const_v<T>)
  static auto stored(T* elements) {
    return reinterpret_cast<storage_of<format_of<T>>*>(elements);
  }

  double* scratch_in(growing_buffer& memory, std::size_t count) const {
    return memory.at_least(count, stream_, device_);
  }

  /// @param part  tiles are so many times shorter than the longest
  template <scalar T>
  const tile_table& tiles(const slice& window, unsigned part) const {
    return workspace_->tables.find(window, tile_length<format_of<T>> / part, stream_, device_);
  }

  template <int Count, scalar T>
  static vector_list<Count> listed(std::span<const T* const> vectors) {
    vector_list<Count> list{};
    std::copy(vectors.begin(), vectors.end(), list.at);
    return list;
  }

  /// More addresses than a kernel's argument lists, in the workspace.
  template <scalar T>
  const void* const* addresses(std::span<const T* const> vectors) const {
    static_assert(sizeof(double) == sizeof(void*));
    double* const scratch = scratch_in(workspace_->addresses, vectors.size());
    write_by_arguments<const T*>(vectors, reinterpret_cast<const T**>(scratch), stream_);
    return reinterpret_cast<const void* const*>(scratch);
  }

  cudaStream_t stream_;
  int device_;
  std::shared_ptr<cuda::workspace> workspace_;
};

}  // namespace adasum::detail::cuda
