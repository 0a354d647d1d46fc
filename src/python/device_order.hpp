// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <map>
#include <optional>

namespace adasum::python {

/// The streams on which a thread works: one for each device, beside those of the program.
class side_streams {
 public:
  c10::Stream of(at::Device device) {
    const auto found = streams_.find(device.index());
    if (found != streams_.end() && found->second.device() == device) return found->second;
    const auto made = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, false);
    return streams_.insert_or_assign(device.index(), made).first->second;
  }

 private:
  std::map<c10::DeviceIndex, c10::Stream> streams_;  // a process has devices of one type
};

/// A job's place in the order of its tensor's device: behind all that the asking thread had enqueued on its current stream.
class device_order {
 public:
  /// On the thread that asks.
  explicit device_order(const at::Tensor& tensor) : device_(tensor.device()) {
    if (device_.is_cpu()) return;
    asked_.emplace(device_.type());
    asked_->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }
  const at::Device& device() const { return device_; }

  /// On the thread that works: while it lives, its stream is the current one.
  class turn {
   public:
    turn(device_order& order, side_streams& streams, const at::Tensor& tensor) {
      if (order.device_.is_cpu()) return;
      const auto stream = streams.of(order.device_);
      guard_.emplace(stream);
      order.asked_->block(stream);
      // So that its memory serves nobody else before this stream has come so far, even if the program drops it.
      const auto keep = [&](const at::Tensor& dense) {
        c10::impl::VirtualGuardImpl(order.device_.type()).recordDataPtrOnStream(dense.storage().data_ptr(), stream);
      };
      if (tensor.layout() == at::kStrided) {
        keep(tensor);
      } else {
        keep(tensor._indices());
        keep(tensor._values());
      }
    }

    /// Blocks until all that has been started has ended.
    void wait() const {
      if (guard_) guard_->current_stream().synchronize();
    }
    /// The same after a failure, since nobody waits for the stream then.
    void drain() const noexcept {
      try {
        wait();
      } catch (const std::exception&) {  // the device itself has failed
      }
    }

   private:
    std::optional<c10::StreamGuard> guard_;
  };

 private:
  at::Device device_;
  std::optional<c10::Event> asked_;
};

}  // namespace adasum::python
