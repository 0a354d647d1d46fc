// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <list>
#include <span>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/segments.hpp"
#include "../../core/tiles.hpp"
#include "device.hpp"
#include "memory.hpp"

namespace adasum::cuda_backend {

/// The tiles of one window, in memory of the device.
struct tile_table {
  std::vector<std::size_t> offsets;  // the window and the length that it was made for
  index_range range;
  std::size_t origin, longest;
  std::size_t count;               ///< of tiles
  buffer<tile> tiles;              ///< in order
  buffer<std::size_t> first_tile;  ///< of each segment, and behind them their number
  bool in_graph = false;           ///< a recorded graph refers to it

  bool is_for(const slice& window, std::size_t length) const {
    return longest == length && range == window.range && origin == window.origin &&
           std::ranges::equal(offsets, window.segments.offsets());
  }
};

/// first_tile[k] is the number of tiles of the segments before k; segments + 1 entries.
inline std::vector<std::size_t> first_tiles(std::span<const tile> tiles, std::size_t segments) {
  std::vector<std::size_t> first(segments + 1, 0);
  for (const auto& one : tiles) ++first[one.segment + 1];
  for (std::size_t k = 0; k < segments; ++k) first[k + 1] += first[k];
  return first;
}

/// Tables of the windows that were used last, so that reducing the same gradients again uploads nothing.
class tile_tables {
 public:
  static constexpr std::size_t most = 64;

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
        throw bad_input("adasum::cuda_space: a graph can record only calls whose segments and element type have been used "
                        "before on this space: make the same call once before the capture");
      tables_.push_front(make(window, longest, stream, device));
      forget_oldest();
    }
    tables_.front().in_graph |= capturing;
    return tables_.front();
  }

 private:
  static tile_table make(const slice& window, std::size_t longest, cudaStream_t stream, int device) {
    const auto tiles = tiles_of(window, longest);
    const auto first = first_tiles(tiles, window.segments.size());
    const auto offsets = window.segments.offsets();
    tile_table table{{offsets.begin(), offsets.end()}, window.range, window.origin, longest, tiles.size(),
                     {tiles.size(), stream, device}, {first.size(), stream, device}};
    // From ordinary memory the runtime copies before it returns.
    if (!tiles.empty())
      check("cudaMemcpyAsync", cudaMemcpyAsync(table.tiles.data(), tiles.data(), tiles.size() * sizeof(tile),
                                               cudaMemcpyHostToDevice, stream));
    check("cudaMemcpyAsync", cudaMemcpyAsync(table.first_tile.data(), first.data(), first.size() * sizeof(std::size_t),
                                             cudaMemcpyHostToDevice, stream));
    return table;
  }

  void forget_oldest() {
    if (tables_.size() <= most) return;
    const auto oldest = std::find_if(tables_.rbegin(), tables_.rend(), [](const tile_table& table) { return !table.in_graph; });
    if (oldest != tables_.rend()) tables_.erase(std::prev(oldest.base()));
  }

  std::list<tile_table> tables_;  // the last one used first
};

}  // namespace adasum::cuda_backend
