// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/core/message.hpp>
#include <adasum/torch_tensor.hpp>
#include "messages.hpp"

namespace adasum::detail::c10d {

/// Exchanges of messages that lie in memory of a device, and of others, which the host's messages carry. These go first, with
/// the size of each message of the device, or the word that it is withheld: backends for devices send and receive what is
/// agreed, and wait for good otherwise. Then the device's messages follow in the order of its current stream, without a copy
/// to the host.
class device_messages {
 public:
  /// @param host   must outlive this object
  /// @param group  the same ranks, whose backend sends tensors of the device; null if none does: then all goes through the host
  /// @param sends_both  whether it sends tensors of the CPU, too
  device_messages(messages& host, c10::intrusive_ptr<::c10d::ProcessGroup> group, bool sends_both)
      : host_(host), group_(std::move(group)), sends_both_(sends_both) {}
  device_messages(const device_messages&) = delete;
  device_messages& operator=(const device_messages&) = delete;

  /// Throws as messages::exchange does.
  template <device_space Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) {
    if (group_ && (sends_both_ || !space.device().is_cpu()))
      exchange_directly(space.device(), out, in);
    else
      exchange_by_host(space, out, in);
  }

 private:
  using work_ptr = c10::intrusive_ptr<::c10d::Work>;
  static constexpr int tag = 24303;

  static bool is_on_device(const auto& message) { return message.where == memory_kind::space; }

  // ── through the host ──

  template <device_space Space>
  void exchange_by_host(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) {
    std::size_t bytes = 0;
    for (const auto& message : out) bytes += is_on_device(message) ? message.bytes.size() : 0;
    for (const auto& message : in) bytes += is_on_device(message) ? message.bytes.size() : 0;
    typename Space::host_memory memory(bytes);
    auto* next = memory.data();
    out_.assign(out.begin(), out.end());
    in_.assign(in.begin(), in.end());
    for (auto& message : out_) {
      if (!is_on_device(message)) continue;
      if (!message.withheld) space.download(message.bytes.data(), next, message.bytes.size());
      message.bytes = {next, message.bytes.size()};
      next += message.bytes.size();
    }
    space.fence();
    for (auto& message : in_) {
      if (!is_on_device(message)) continue;
      message.bytes = {next, message.bytes.size()};
      next += message.bytes.size();
    }
    host_.exchange(out_, in_);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (is_on_device(in[i]) && !in[i].discarded)
        space.upload(in_[i].bytes.data(), in[i].bytes.data(), in[i].bytes.size());
    space.fence();
  }

  // ── from device to device ──

  void exchange_directly(at::Device device, std::span<const outgoing> out, std::span<const incoming> in) {
    tell_sizes(out, in);
    std::string wrong;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (is_on_device(in[i])) host_.find_problem(in[i], said_in_[i], wrong);
    host_.guarded_by_state([&] {
      const bool together = starts_coalescing(*group_, device);
      for (std::size_t i = 0; i < in.size(); ++i)
        if (is_on_device(in[i]) && said_in_[i] != messages::withheld && said_in_[i] != 0)
          start(
              "receiving from", in[i].peer, [&](auto& tensors) { return group_->recv(tensors, in[i].peer, tag); },
              buffer_for(in[i], said_in_[i], device));
      for (const auto& message : out)
        if (is_on_device(message) && !message.withheld && !message.bytes.empty())
          start(
              "sending to", message.peer, [&](auto& tensors) { return group_->send(tensors, message.peer, tag); },
              bytes_at(message.bytes.data(), message.bytes.size(), device));
      if (together) finish_coalescing(*group_, device);
      for (auto& [work, doing, peer] : works_) host_.guarded(doing, peer, [&] { work->wait(); });
      works_.clear();
    });
    host_.require_right(wrong);
  }

  void tell_sizes(std::span<const outgoing> out, std::span<const incoming> in) {
    out_.assign(out.begin(), out.end());
    in_.assign(in.begin(), in.end());
    said_out_.resize(out.size());
    said_in_.resize(in.size());
    works_.clear();
    works_.reserve(out.size() + in.size() + 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!is_on_device(out[i])) continue;
      said_out_[i] = out[i].withheld ? messages::withheld : out[i].bytes.size();
      out_[i] = {out[i].peer, std::as_bytes(std::span(&said_out_[i], 1))};
    }
    for (std::size_t i = 0; i < in.size(); ++i)
      if (is_on_device(in[i])) in_[i] = {in[i].peer, std::as_writable_bytes(std::span(&said_in_[i], 1))};
    host_.exchange(out_, in_);
  }

  static at::Tensor bytes_at(const void* at, std::size_t count, at::Device device) {
    return detail::tensor_over(at, count, at::TensorOptions().dtype(at::kByte).device(device));
  }
  static at::Tensor buffer_for(const incoming& message, std::size_t size, at::Device device) {
    if (size == message.bytes.size() && !message.discarded) return bytes_at(message.bytes.data(), size, device);
    return at::empty({static_cast<std::int64_t>(size)}, at::TensorOptions().dtype(at::kByte).device(device));
  }

  template <class Call>
  void start(const char* doing, int peer, const Call& call, at::Tensor bytes) {
    std::vector<at::Tensor> tensors{std::move(bytes)};
    if (auto work = host_.guarded(doing, peer, [&] { return call(tensors); }))
      works_.push_back({std::move(work), doing, peer});
  }

  // NCCL's messages wait for each other on the device, unless they are started together. A template, as groups of PyTorch 1.13
  // have no devices.
  template <class Group>
  static bool starts_coalescing(Group& group, at::Device device) {
    if constexpr (requires { group.getBackend(device.type())->supportsCoalescing(); }) {
      if (!group.getBackend(device.type())->supportsCoalescing()) return false;
      group.startCoalescing(device.type());
      return true;
    } else {
      return false;
    }
  }
  template <class Group>
  void finish_coalescing(Group& group, at::Device device) {
    if constexpr (requires { works_.push_back({group.endCoalescing(device.type()), "", 0}); }) {
      works_.clear();
      if (auto work = group.endCoalescing(device.type()))
        works_.push_back({std::move(work), "exchanging with", host_.rank()});
    }
  }

  struct started {
    work_ptr work;
    const char* doing;
    int peer;
  };
  messages& host_;
  c10::intrusive_ptr<::c10d::ProcessGroup> group_;
  bool sends_both_;
  std::vector<outgoing> out_;  // of the host
  std::vector<incoming> in_;
  std::vector<messages::word> said_out_, said_in_;
  std::vector<started> works_;
};

}  // namespace adasum::detail::c10d
