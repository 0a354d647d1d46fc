// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/core/message.hpp>
#include <adasum/core/torch_types.hpp>
#include "messages.hpp"

namespace adasum::detail::c10d {

/// Exchanges of messages that lie in memory of a device, and of others, which the host's messages carry. These go first, with
/// what both ends say of each message of the device: backends for devices wait for good for what is not sent. Then the device's
/// messages follow in the order of its current stream, without a copy to the host.
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
    if (group_ && (space.device().is_cpu() ? sends_both_ : knows_coalescing<::c10d::ProcessGroup>))
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
    out_.assign(out.begin(), out.end());
    in_.assign(in.begin(), in.end());
    std::size_t bytes = 0;
    for (const auto& message : out) bytes += is_on_device(message) ? message.bytes.size() : 0;
    for (const auto& message : in) bytes += is_on_device(message) ? message.bytes.size() : 0;
    std::optional<typename Space::host_memory> memory;
    std::exception_ptr failure;
    try {
      auto* next = memory.emplace(bytes).data();
      for (auto& message : out_) {
        if (!is_on_device(message)) continue;
        if (!message.withheld) space.download(message.bytes.data(), next, message.bytes.size());
        message.bytes = {next, message.bytes.size()};
        next += message.bytes.size();
      }
      for (auto& message : in_) {
        if (!is_on_device(message)) continue;
        message.bytes = {next, message.bytes.size()};
        next += message.bytes.size();
      }
      space.fence();
    } catch (...) {  // the others wait for messages all the same
      failure = std::current_exception();
      for (auto& message : out_) message.withheld = true;
      for (auto& message : in_)
        if (is_on_device(message)) message.bytes = {};
    }
    const auto wrong = host_.exchange_all(out_, in_);
    if (failure) std::rethrow_exception(failure);
    host_.require_right(wrong);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (is_on_device(in[i]) && !in[i].discarded)
        space.upload(in_[i].bytes.data(), in[i].bytes.data(), in[i].bytes.size());
    space.fence();
  }

  // ── from device to device ──

  void exchange_directly(at::Device device, std::span<const outgoing> out, std::span<const incoming> in) {
    auto wrong = tell_sizes(out, in);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (is_on_device(in[i])) host_.find_problem(in[i], received_[i].word, wrong);
    host_.guarded_by_state([&] {
      const bool together = starts_coalescing(*group_, device);
      try {
        for (std::size_t i = 0; i < in.size(); ++i)
          if (is_on_device(in[i]) && received_[i].travels())
            start("receiving from", in[i].peer, [&](auto& tensors) { return group_->recv(tensors, in[i].peer, tag); },
                  bytes_at(in[i].bytes.data(), in[i].bytes.size(), device));
        for (std::size_t i = 0; i < out.size(); ++i)
          if (is_on_device(out[i]) && sent_[i].travels())
            start("sending to", out[i].peer, [&](auto& tensors) { return group_->send(tensors, out[i].peer, tag); },
                  bytes_at(out[i].bytes.data(), out[i].bytes.size(), device));
      } catch (...) {
        try {  // what has been started still uses memory
          if (together) finish_coalescing(*group_, device);
          for (auto& one : works_) one.work->wait();
        } catch (const std::exception&) {  // the first failure is what counts
        }
        throw;
      }
      if (together) finish_coalescing(*group_, device);
      for (auto& one : works_) host_.guarded(one.doing, one.peer, [&] { one.work->wait(); });
      works_.clear();
    });
    host_.require_right(wrong);
  }

  /// What both ends of a message say of it: its size, or that they withhold or discard it. It travels if they say the same, so
  /// that neither waits for what the other does not send, and none needs memory for what it does not want.
  struct word_pair {
    messages::word word = 0, own = 0;
    bool travels() const { return word == own && own != 0 && own != messages::withheld; }
  };

  /// @return what is wrong with messages of the host
  std::string tell_sizes(std::span<const outgoing> out, std::span<const incoming> in) {
    works_.clear();
    works_.reserve(out.size() + in.size() + 1);
    sent_.assign(out.size(), {});
    received_.assign(in.size(), {});
    out_.assign(out.begin(), out.end());
    in_.assign(in.begin(), in.end());
    // Between two ranks, first what one sends and the other receives, then the answers in the same order.
    const auto own = [](int peer, word_pair& of) { return outgoing{peer, std::as_bytes(std::span(&of.own, 1))}; };
    const auto other = [](int peer, word_pair& of) { return incoming{peer, std::as_writable_bytes(std::span(&of.word, 1))}; };
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!is_on_device(out[i])) continue;
      sent_[i].own = out[i].withheld ? messages::withheld : out[i].bytes.size();
      out_[i] = own(out[i].peer, sent_[i]);
      in_.push_back(other(out[i].peer, sent_[i]));
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!is_on_device(in[i])) continue;
      received_[i].own = in[i].discarded ? messages::withheld : in[i].bytes.size();
      in_[i] = other(in[i].peer, received_[i]);
      out_.push_back(own(in[i].peer, received_[i]));
    }
    return host_.exchange_all(out_, in_);
  }

  static at::Tensor bytes_at(const void* at, std::size_t count, at::Device device) {
    return detail::tensor_over(at, count, at::TensorOptions().dtype(at::kByte).device(device));
  }

  template <class Call>
  void start(const char* doing, int peer, const Call& call, at::Tensor bytes) {
    std::vector<at::Tensor> tensors{std::move(bytes)};
    if (auto work = host_.guarded(doing, peer, [&] { return call(tensors); }))
      works_.push_back({std::move(work), doing, peer});
  }

  // NCCL's messages wait for each other on the device, unless they are started together. Templates, as older versions of
  // PyTorch do not tell whether a backend does so.
  template <class Group>
  static constexpr bool knows_coalescing =
      requires(Group& group) { group.getBackend(c10::DeviceType::CPU)->supportsCoalescing(); };
  template <class Group>
  static bool starts_coalescing(Group& group, at::Device device) {
    if constexpr (knows_coalescing<Group>) {
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
  std::vector<word_pair> sent_, received_;  // of each message of the device
  std::vector<started> works_;
};

}  // namespace adasum::detail::c10d
