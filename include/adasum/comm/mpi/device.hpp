// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <vector>

#include "../../core/stay_loaded.hpp"

namespace adasum::detail::mpi {

/// A device, as exchanges see it: copies between its memory and pinned memory of the host, which this object keeps, and
/// moments after them, which are numbered.
class device {
 public:
  virtual ~device() = default;

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
  device_of() { stay_loaded(); }  // the communicator may be another library's, and destroy it later

  void fence() override { space->fence(); }
  std::byte* host_memory(std::size_t bytes) override {
    memory_ = typename Space::host_memory(bytes);
    return memory_.data();
  }
  void download(const std::byte* from, std::byte* to, std::size_t bytes) override { space->download(from, to, bytes); }
  void upload(const std::byte* from, std::byte* to, std::size_t bytes) override { space->upload(from, to, bytes); }
  void reserve(std::size_t moments) override { moments_.reserve(moments); }
  void record(std::size_t moment) override {
    while (moments_.size() <= moment) moments_.emplace_back();
    space->record(moments_[moment]);
  }
  void wait(std::size_t moment) override { moments_[moment].wait(); }

  const Space* space = nullptr;  ///< of the exchange in progress

 private:
  typename Space::host_memory memory_{0};
  std::vector<typename Space::event> moments_;
};

/// Its address tells kinds of devices apart; not const, or linkers might merge those of two.
template <class Space>
inline char kind_of_device = 0;

}  // namespace adasum::detail::mpi
