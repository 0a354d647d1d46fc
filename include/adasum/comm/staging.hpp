// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/message.hpp"

namespace adasum {

/// Rooms in pinned memory of the host for one exchange of elements that lie in memory of a device.
///
///     begin → room_for… (what will be received), start_download… (what will be sent, copied piece by piece)
///           → for each message next_download, for each of its pieces wait_for_piece and send
///           → upload for each piece that has arrived → end
///
/// Downloads run while earlier pieces travel, uploads while later ones do. Memory and events are kept, so that an
/// exchange allocates nothing once it has grown to its size. Not for several threads at a time.
template <class Space>
class staging {
 public:
  /// Long enough that a message's latency does not count, short enough that copies and messages overlap.
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;

  staging() = default;
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;
  /// Waits for copies that still run.
  ~staging() {
    try {
      settle();
    } catch (...) {  // the device has failed: nothing runs there any more
    }
  }

  /// Waits until the copies of the last exchange have left their rooms.
  void begin(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) {
    if (copying_ && !recorded_) space.fence();  // that exchange failed in between
    settle();
    std::size_t bytes = 0;
    for (const auto& message : out) bytes += rounded(message.where == residence::space ? message.bytes.size() : 0);
    for (const auto& room : in) bytes += rounded(room.where == residence::space ? room.bytes.size() : 0);
    if (bytes > capacity_) {
      const auto more = std::max(bytes, 2 * capacity_);
      memory_ = typename Space::host_memory(more);
      capacity_ = more;
    }
    used_ = pieces_ = pieces_waited_for_ = 0;
    next_download_ = 0;
    downloads_.clear();
    targets_.clear();
  }

  std::span<std::byte> room_for(std::span<std::byte> on_device) {
    const auto room = take(on_device.size());
    targets_.push_back({room, on_device.data()});
    return room;
  }

  void start_download(const Space& space, std::span<const std::byte> on_device, std::size_t piece) {
    const auto room = take(on_device.size());
    downloads_.push_back(room);
    std::size_t done = 0;
    do {
      const auto bytes = std::min(piece, on_device.size() - done);
      copying_ = true;
      space.download(on_device.data() + done, room.data() + done, bytes);
      if (pieces_ == events_.size()) events_.emplace_back();
      space.record(events_[pieces_++]);
      done += bytes;
    } while (done < on_device.size());
  }
  std::span<const std::byte> next_download() { return downloads_[next_download_++]; }
  /// In the order in which they were started.
  void wait_for_piece() { events_[pieces_waited_for_++].wait(); }

  /// Bytes that have arrived in a room; others are none of this object's business.
  void upload(const Space& space, const std::byte* at, std::size_t bytes) {
    for (const auto& [room, on_device] : targets_)
      if (at >= room.data() && at < room.data() + room.size()) {
        copying_ = true;
        space.upload(at, on_device + (at - room.data()), bytes);
        return;
      }
  }
  void end(const Space& space) {
    if (!copying_) return;
    space.record(last_copy_);
    recorded_ = true;
  }

 private:
  struct target {
    std::span<std::byte> room;
    std::byte* on_device;
  };
  void settle() {
    if (recorded_) last_copy_.wait();
    copying_ = recorded_ = false;
  }
  static constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  std::span<std::byte> take(std::size_t bytes) {
    const auto at = used_;
    used_ += rounded(bytes);
    return {memory_.data() + at, bytes};
  }

  typename Space::host_memory memory_{0};
  std::size_t capacity_ = 0, used_ = 0;
  std::vector<typename Space::event> events_;  // one for each piece that is downloaded
  std::size_t pieces_ = 0, pieces_waited_for_ = 0, next_download_ = 0;
  std::vector<std::span<const std::byte>> downloads_;
  std::vector<target> targets_;
  typename Space::event last_copy_;
  bool copying_ = false, recorded_ = false;  // copies were started; and last_copy_ stands behind them
};

}  // namespace adasum
