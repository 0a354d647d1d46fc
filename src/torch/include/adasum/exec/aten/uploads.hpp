// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace adasum::detail::aten {

/// Numbers of the host that operators on a device need. The copies to the device are only started, so this object keeps what
/// they read until it is told that they have ended.
class uploads {
 public:
  explicit uploads(at::Device device) : device_(device) {}

  at::Tensor numbers(const std::vector<std::int64_t>& given) { return start(at::tensor(given, at::kLong)); }
  at::Tensor numbers(std::span<const double> given) {
    return start(at::tensor(at::ArrayRef<double>(given.data(), given.size()), at::kDouble));
  }
  void all_ended() { kept_.clear(); }

 private:
  at::Tensor start(at::Tensor of_host) {
    if (device_.is_cpu()) return of_host;
    auto on_device = of_host.to(device_, /*non_blocking=*/true);
    kept_.push_back(std::move(of_host));
    return on_device;
  }

  at::Device device_;
  std::vector<at::Tensor> kept_;
};

}  // namespace adasum::detail::aten
