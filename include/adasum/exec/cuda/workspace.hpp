// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cuda_runtime.h>
#include <iterator>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/segments.hpp"
#include "../tiles.hpp"
#include "device.hpp"
#include "memory.hpp"

namespace adasum::detail::cuda {

/// The tiles of one window, in memory of the device.
struct tile_table {
  std::vector<std::size_t> offsets;  // the window and the length that it was made for
  index_range range;
  std::size_t origin, longest;
  std::size_t count;                 ///< of tiles
  buffer<tile> tiles;                ///< in order
  buffer<std::size_t> first_tile;    ///< of each segment, and behind them their number
  std::vector<tile> uploaded_tiles;  // kept, since the copies to the device may still run
  std::vector<std::size_t> uploaded_first_tile;
  bool in_graph = false;  ///< a recorded graph refers to it

  bool is_for(const slice& window, std::size_t length) const {
    return longest == length && range == window.range && origin == window.origin &&
           std::ranges::equal(offsets, window.segments.offsets());
  }
};

/// Tables of the windows that were used last, so that reducing the same gradients again uploads nothing.
class tile_tables {
 public:
  /// So many are kept besides those of graphs.
  static constexpr std::size_t most = 256;

  /// Enqueues the upload of a table that is not there yet; the host waits for no kernel.
  /// @throws bad_input   a new window while the stream is being recorded in a graph
  /// @throws cuda_error
  const tile_table& find(const slice& window, std::size_t longest, cudaStream_t stream, int device) {
    auto at = std::ranges::find_if(tables_, [&](const tile_table& table) { return table.is_for(window, longest); });
    const bool capturing = is_capturing(stream);
    if (at != tables_.end()) {
      tables_.splice(tables_.begin(), tables_, at);
    } else {
      if (capturing)
        throw bad_input(
            "adasum::cuda_space: a graph can record only calls whose segments and element type have been used "
            "before on this space: make the same call once before the capture");
      forget_oldest(stream);
      tables_.push_front(make(window, longest, stream, device));
    }
    auto& table = tables_.front();
    table.in_graph |= capturing;
    return table;
  }

 private:
  static tile_table make(const slice& window, std::size_t longest, cudaStream_t stream, int device) {
    auto tiles = tiles_of(window, longest);
    auto first = first_tiles(tiles, window.segments.size());
    const auto offsets = window.segments.offsets();
    tile_table table{{offsets.begin(), offsets.end()},
                     window.range,
                     window.origin,
                     longest,
                     tiles.size(),
                     {tiles.size(), stream, device},
                     {first.size(), stream, device},
                     std::move(tiles),
                     std::move(first)};
    const auto upload = [&](auto& to, const auto& from) {
      if (!from.empty())
        check("cudaMemcpyAsync",
              cudaMemcpyAsync(to.data(), from.data(), from.size() * sizeof(from[0]), cudaMemcpyHostToDevice, stream));
    };
    upload(table.tiles, table.uploaded_tiles);
    upload(table.first_tile, table.uploaded_first_tile);
    return table;
  }

  /// Makes room for one more.
  void forget_oldest(cudaStream_t stream) {
    const auto may_go = [](const tile_table& table) { return !table.in_graph; };
    if (static_cast<std::size_t>(std::ranges::count_if(tables_, may_go)) < most) return;
    check("cudaStreamSynchronize", cudaStreamSynchronize(stream));  // its upload has ended then
    tables_.erase(std::prev(std::find_if(tables_.rbegin(), tables_.rend(), may_go).base()));
  }

  std::list<tile_table> tables_;  // the last one used first
};

/// Memory that only grows, so that after the first calls nothing is allocated.
class growing_buffer {
 public:
  /// @throws bad_input  it would have to grow while the stream is being recorded in a graph
  double* at_least(std::size_t count, cudaStream_t stream, int device) {
    const bool capturing = is_capturing(stream);
    if (count > memory_.size()) {
      if (capturing)
        throw bad_input(
            "adasum::cuda_space: a graph can record only calls that need no new memory: make the same call once "
            "before the capture");
      buffer<double> larger(std::max(count, 2 * memory_.size()), stream, device);
      if (in_graph_) retired_.push_back(std::move(memory_));
      memory_ = std::move(larger);
      in_graph_ = false;
    }
    in_graph_ |= capturing;
    return memory_.data();
  }

 private:
  buffer<double> memory_;
  bool in_graph_ = false;                // a recorded graph refers to memory_
  std::vector<buffer<double>> retired_;  // what recorded graphs refer to
};

/// What a kernel that runs cooperatively can count on.
struct cooperative_limits {
  std::size_t blocks = 0;        ///< at the same time on the device; 0: none
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of each
};

/// What the calls on one stream keep between them.
struct workspace {
  tile_tables tables;
  growing_buffer partials, gram, weights, trees, addresses;
  pinned_buffer<double> host_gram;
  std::map<const void*, cooperative_limits> limits;  // by kernel

  double* host_scratch(std::size_t count) {
    if (count > host_gram.size()) host_gram = pinned_buffer<double>(std::max(count, 2 * host_gram.size()));
    return host_gram.data();
  }

  /// @param resident_blocks  so many blocks are to share a multiprocessor's memory
  template <class Kernel>
  cooperative_limits limits_of(Kernel* kernel, unsigned threads, unsigned resident_blocks, int device) {
    const auto key = reinterpret_cast<const void*>(kernel);
    if (const auto known = limits.find(key); known != limits.end()) return known->second;
    cooperative_limits found;
    if (attribute(cudaDevAttrCooperativeLaunch, device) != 0) {
      cudaFuncAttributes kernel_has{};
      check("cudaFuncGetAttributes", cudaFuncGetAttributes(&kernel_has, key));
      const auto value = [&](cudaDeviceAttr which) { return static_cast<std::size_t>(attribute(which, device)); };
      const auto share = value(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / resident_blocks -
                         value(cudaDevAttrReservedSharedMemoryPerBlock);
      const auto most = std::min(share, value(cudaDevAttrMaxSharedMemoryPerBlockOptin));
      found.shared_bytes = most > kernel_has.sharedSizeBytes ? most - kernel_has.sharedSizeBytes : 0;
      check("cudaFuncSetAttribute", cudaFuncSetAttribute(key, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                         static_cast<int>(found.shared_bytes)));
      int resident = 0;
      check(
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, key, static_cast<int>(threads), found.shared_bytes));
      found.blocks = static_cast<std::size_t>(resident) * value(cudaDevAttrMultiProcessorCount);
    }
    return limits.emplace(key, found).first->second;
  }
};

}  // namespace adasum::detail::cuda
