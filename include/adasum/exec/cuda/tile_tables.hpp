// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
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

}  // namespace adasum::detail::cuda
