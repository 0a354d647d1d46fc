// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../../core/message.hpp"
#include "../../core/stay_loaded.hpp"

namespace adasum::detail::mpi {

/// A device, as exchanges see it: copies between its memory and pinned memory of the host, which this object keeps, and
/// moments after them, which are numbered.
class device {
 public:
  virtual ~device() = default;

  /// @param space  of the exchange that begins
  virtual void use(const void* space) = 0;
  virtual void fence() = 0;
  /// Pinned memory of so many bytes, in place of what it has.
  virtual std::byte* host_memory(std::size_t bytes) = 0;
  virtual void download(const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  virtual void upload(const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  /// Memory of the host for so many moments. @throws std::bad_alloc
  virtual void reserve(std::size_t moments) = 0;
  virtual void record(std::size_t moment) = 0;
  virtual void wait(std::size_t moment) = 0;
};

/// That of an execution space.
template <class Space>
class device_of final : public device {
 public:
  /// Its address tells kinds of devices apart.
  static std::unique_ptr<device> make() {
    stay_loaded();  // the communicator may be another library's, and destroy it later
    return std::make_unique<device_of>();
  }

  void use(const void* space) override { space_ = static_cast<const Space*>(space); }
  void fence() override { space_->fence(); }
  std::byte* host_memory(std::size_t bytes) override {
    memory_ = typename Space::host_memory(bytes);
    return memory_.data();
  }
  void download(const std::byte* from, std::byte* to, std::size_t bytes) override { space_->download(from, to, bytes); }
  void upload(const std::byte* from, std::byte* to, std::size_t bytes) override { space_->upload(from, to, bytes); }
  void reserve(std::size_t moments) override { moments_.reserve(moments); }
  void record(std::size_t moment) override {
    while (moments_.size() <= moment) moments_.emplace_back();
    space_->record(moments_[moment]);
  }
  void wait(std::size_t moment) override { moments_[moment].wait(); }

 private:
  const Space* space_ = nullptr;
  typename Space::host_memory memory_{0};
  std::vector<typename Space::event> moments_;
};

/// Copies elements between memory of a device and buffers in pinned memory of the host, for one exchange at a time:
///
///     reserve
///     begin
///       → buffer_for(…) for each message to be received, start_download(…) for each to be sent
///       → for each of the latter next_download(), and for each of its pieces wait_for_piece(), then send it
///       → upload(…) for each piece that has arrived
///     end
///
/// Downloads run while earlier pieces travel, uploads while later ones do. Buffers and events are kept, so that an
/// exchange allocates nothing once they have grown to its size. Not for several threads at a time.
class staging {
 public:
  /// Long enough that a message's latency does not count, short enough that copies and messages overlap.
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;

  explicit staging(std::unique_ptr<mpi::device> of) : device_(std::move(of)) {}
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;
  /// Waits for copies that still run.
  ~staging() {
    try {
      wait_for_copies();
    } catch (...) {  // the device has failed: nothing runs there any more
    }
  }

  mpi::device& device() const { return *device_; }

  /// Memory of the host for so many messages, so that what follows needs none. @throws std::bad_alloc
  /// @param pieces  of all messages that are sent
  void reserve(std::size_t sent, std::size_t received, std::size_t pieces) {
    downloads_.reserve(sent);
    uploads_.reserve(received);
    device_->reserve(first_piece + pieces);
  }

  /// Waits until the copies of the last exchange no longer use the buffers.
  void begin(std::span<const outgoing> out, std::span<const incoming> in) {
    if (copying_ && !recorded_) device_->fence();  // that exchange failed before its end()
    wait_for_copies();
    std::size_t bytes = 0;
    for (const auto& message : out) bytes += rounded(message.where == memory_kind::space ? message.bytes.size() : 0);
    for (const auto& message : in) bytes += rounded(message.where == memory_kind::space ? message.bytes.size() : 0);
    if (bytes > capacity_) {
      const auto more = std::max(bytes, 2 * capacity_);
      memory_ = device_->host_memory(more);
      capacity_ = more;
    }
    used_ = 0;
    pieces_ = pieces_waited_for_ = first_piece;
    next_download_ = 0;
    downloads_.clear();
    uploads_.clear();
  }

  /// Where a message is to be received that upload() then copies to `on_device`.
  std::span<std::byte> buffer_for(std::span<std::byte> on_device) {
    const auto buffer = take(on_device.size());
    uploads_.push_back({buffer, on_device.data()});
    return buffer;
  }

  void start_download(std::span<const std::byte> on_device, std::size_t piece_limit) {
    const auto buffer = take(on_device.size());
    downloads_.push_back(buffer);
    std::size_t done = 0;
    do {
      const auto bytes = std::min(piece_limit, on_device.size() - done);
      copying_ = true;
      device_->download(on_device.data() + done, buffer.data() + done, bytes);
      device_->record(pieces_++);
      done += bytes;
    } while (done < on_device.size());
  }
  /// The buffers of the downloads, in the order in which they were started.
  std::span<const std::byte> next_download() { return downloads_[next_download_++]; }
  /// Waits for the next piece of all downloads, in the same order.
  void wait_for_piece() { device_->wait(pieces_waited_for_++); }

  /// Starts the copy of bytes that have arrived in one of the buffers. Bytes elsewhere are ignored.
  void upload(std::span<const std::byte> arrived) {
    for (const auto& [buffer, on_device] : uploads_)
      if (arrived.data() >= buffer.data() && arrived.data() < buffer.data() + buffer.size()) {
        copying_ = true;
        device_->upload(arrived.data(), on_device + (arrived.data() - buffer.data()), arrived.size());
        return;
      }
  }
  void end() {
    if (!copying_) return;
    device_->record(last_copy);
    recorded_ = true;
  }

 private:
  struct upload_target {
    std::span<std::byte> buffer;
    std::byte* on_device;
  };
  // The moments: behind all copies of an exchange, and one for each piece that is downloaded.
  static constexpr std::size_t last_copy = 0, first_piece = 1;

  void wait_for_copies() {
    if (recorded_) device_->wait(last_copy);
    copying_ = recorded_ = false;
  }
  static constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  std::span<std::byte> take(std::size_t bytes) {
    const auto at = used_;
    used_ += rounded(bytes);
    return {memory_ + at, bytes};
  }

  std::unique_ptr<mpi::device> device_;
  std::byte* memory_ = nullptr;  // the device's, pinned
  std::size_t capacity_ = 0, used_ = 0;
  std::size_t pieces_ = first_piece, pieces_waited_for_ = first_piece, next_download_ = 0;
  std::vector<std::span<const std::byte>> downloads_;
  std::vector<upload_target> uploads_;
  bool copying_ = false;   // copies have been started since they were last waited for
  bool recorded_ = false;  // and last_copy stands behind all of them
};

}  // namespace adasum::detail::mpi
