// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <vector>

#include "../../core/segments.hpp"

/// How work is shared out.
namespace adasum::detail::threads_backend {

/// From when on work is shared out, and in pieces of which size. No result depends on these.
struct sharing_limits {
  /// Work of fewer bytes for each thread is not shared out. To hand out a job and to see its end takes a microsecond or
  /// two, in which a thread reads some 50 KiB from its second cache; and what the calling thread has just written lies there.
  std::size_t least_share = std::size_t{96} << 10;
  /// Sleeping workers are not woken for fewer bytes. It takes the caller some microseconds for each (a system call, and on
  /// virtual machines a way through the hypervisor), and the workers up to 50 until they run: in those, a thread reads 0.5
  /// to 2 MiB. What lies in the caches of the thread that has written it is read faster by that one.
  std::size_t worth_waking = std::size_t{4} << 20;
  /// Of a piece that one thread takes at a time. The kernels begin with each piece anew, which costs 50 ns and the first
  /// cache lines.
  std::size_t smallest_piece = std::size_t{32} << 10, largest_piece = std::size_t{512} << 10;
  /// Of blocks' sums that are kept at a time, if that is work enough for all threads.
  std::size_t sums = std::size_t{4} << 20;
};

/// Consecutive elements of a window, for one thread at a time: whole segments (as far as they lie in the window), or a part
/// of one.
struct piece {
  std::size_t first, count;  ///< segments
  std::size_t begin, end;    ///< elements, counted from the window's origin
  bool is_part;
  std::size_t sums = 0;  ///< of a part that is measured: where those of its blocks begin

  slice of(const slice& window) const {
    return {window.segments.part(first, count), {window.origin + begin, window.origin + end}, window.origin};
  }
};

/// Cuts a window into pieces of `length` elements or more, but fewer than three times as many, in order. Segments of less
/// than twice that length stay whole. All parts of others, but the last ones, have just that length.
inline void cut(const slice& window, std::size_t length, std::vector<piece>& pieces) {
  pieces.clear();
  const auto [first, last] = window.touched();
  bool is_open = false;  // the last piece may get more segments
  for (std::size_t k = first; k < last; ++k) {
    const auto [begin, end] = window.local(k);
    const auto parts = (end - begin) / length;
    if (parts >= 2) {
      for (std::size_t i = 0; i < parts; ++i)
        pieces.push_back({k, 1, begin + i * length, i + 1 == parts ? end : begin + (i + 1) * length, true});
      is_open = false;
    } else if (begin != end) {
      if (!is_open) pieces.push_back({k, 0, begin, begin, false});
      auto& one = pieces.back();
      one.count = k + 1 - one.first;
      one.end = end;
      is_open = one.end - one.begin < length;
    }
  }
}

}  // namespace adasum::detail::threads_backend
