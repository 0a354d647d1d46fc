// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace emulated {

/// Sends tensors of the device, and no others, by way of a backend for the CPU. As with NCCL, messages from rank to rank that
/// are not started together would wait for each other, and so are refused here.
class backend final : public c10d::Backend {
  using work_ptr = c10::intrusive_ptr<c10d::Work>;
  using tensors = std::vector<at::Tensor>;

  struct done final : c10d::Work {
    explicit done(tensors found) : found_(std::move(found)) {}
    bool isCompleted() override { return true; }
    bool isSuccess() const override { return true; }
    bool wait(std::chrono::milliseconds) override { return true; }
    tensors result() override { return found_; }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
      auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                             std::vector<at::Device>{at::Device(at::kPrivateUse1, 0)});
      future->markCompleted(c10::IValue(found_));
      return future;
    }
    tensors found_;
  };

  static tensors on_cpu(const tensors& of_device) {
    tensors copies;
    for (const auto& one : of_device) {
      TORCH_CHECK(one.is_privateuseone(), "emulated_ccl sends tensors of the device only");
      copies.push_back(one.cpu());
    }
    return copies;
  }
  static work_ptr copied_back(const tensors& from, const tensors& to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
    return c10::make_intrusive<done>(to);
  }

 public:
  explicit backend(c10::intrusive_ptr<c10d::Backend> of_host)
      : Backend(of_host->getRank(), of_host->getSize()), host_(std::move(of_host)) {}

  const std::string getBackendName() const override { return "emulated_ccl"; }
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override { together_ = true; }
  work_ptr endCoalescing() override {
    together_ = false;
    std::vector<work_ptr> works;
    for (auto& one : std::exchange(starts_, {})) works.push_back(one());
    for (auto& one : works) one->wait();
    for (auto& one : std::exchange(ends_, {})) one();
    return c10::make_intrusive<done>(tensors{});
  }
  work_ptr send(tensors& what, int to, int) override {
    TORCH_CHECK(together_, "emulated_ccl: messages must be started together");
    starts_.push_back([this, copies = on_cpu(what), to]() mutable { return host_->send(copies, to, 0); });
    return {};
  }
  work_ptr recv(tensors& what, int from, int) override {
    TORCH_CHECK(together_, "emulated_ccl: messages must be started together");
    auto copies = on_cpu(what);
    starts_.push_back([this, copies, from]() mutable { return host_->recv(copies, from, 0); });
    ends_.push_back([copies, what] { copied_back(copies, what); });
    return {};
  }

  work_ptr broadcast(tensors& what, const c10d::BroadcastOptions& options) override {
    auto copies = on_cpu(what);
    host_->broadcast(copies, options)->wait();
    return copied_back(copies, what);
  }
  work_ptr allreduce(tensors& what, const c10d::AllreduceOptions& options) override {
    auto copies = on_cpu(what);
    host_->allreduce(copies, options)->wait();
    return copied_back(copies, what);
  }
  work_ptr allgather(std::vector<tensors>& out, tensors& in, const c10d::AllgatherOptions& options) override {
    auto copies = on_cpu(in);
    std::vector<tensors> gathered{on_cpu(out[0])};
    host_->allgather(gathered, copies, options)->wait();
    return copied_back(gathered[0], out[0]);
  }
  work_ptr _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) {
    auto pieces = out.cpu().view({getSize(), -1});
    std::vector<tensors> gathered{pieces.unbind(0)};
    tensors mine{in.cpu().view(-1)};
    host_->allgather(gathered, mine, options)->wait();
    return copied_back({pieces.view(out.sizes())}, {out});
  }
  work_ptr _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) {
    tensors whole{in.cpu()};
    c10d::AllreduceOptions sums;
    sums.reduceOp = c10d::ReduceOp::SUM;
    host_->allreduce(whole, sums)->wait();
    auto mine = whole[0].view({getSize(), -1})[getRank()].view(out.sizes());
    return copied_back({options.reduceOp == c10d::ReduceOp::AVG ? mine / getSize() : mine}, {out});
  }
  work_ptr all_gather_single(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) {
    return _allgather_base(out, in, options);
  }
  work_ptr all_gather_single_coalesced(tensors& out, tensors& in, const c10d::AllgatherOptions& options) {
    for (std::size_t i = 0; i < out.size(); ++i) _allgather_base(out[i], in[i], options);
    return c10::make_intrusive<done>(out);
  }
  work_ptr reduce_scatter_single(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) {
    return _reduce_scatter_base(out, in, options);
  }
  work_ptr barrier(const c10d::BarrierOptions& options) override { return host_->barrier(options); }

 private:
  c10::intrusive_ptr<c10d::Backend> host_;
  bool together_ = false;
  std::vector<std::function<work_ptr()>> starts_;
  std::vector<std::function<void()>> ends_;
};

}  // namespace emulated
