// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <torch/torch.h>

#include <span>
#include <utility>
#include <vector>

/// Two convolutions, each with max-pooling and relu, and two linear layers: 21,840 parameters in eight tensors.
struct digit_network : torch::nn::Module {
  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 10, 5));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(10, 20, 5));
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(20 * 4 * 4, 50));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(50, 10));

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(conv2(x), 2));
    return fc2(torch::relu(fc1(x.flatten(1))));
  }
};

/// The gradients of all parameters in one flat array: one tensor per parameter looks into it.
class flat_gradient {
 public:
  /// @pre memory.size() is the number of elements of all parameters together; it outlives this object.
  flat_gradient(std::vector<torch::Tensor> parameters, std::span<float> memory)
      : parameters_(std::move(parameters)), memory_(memory) {
    auto* next = memory.data();
    for (const auto& parameter : parameters_) {
      views_.push_back(torch::from_blob(next, parameter.sizes()));
      next += parameter.numel();
    }
  }

  /// From now on backward() adds to this array, and an optimizer reads from it.
  void attach() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = views_[i];
  }

  std::span<float> memory() const { return memory_; }

 private:
  std::vector<torch::Tensor> parameters_, views_;
  std::span<float> memory_;
};
