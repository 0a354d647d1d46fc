// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <string>

#include "uploads.hpp"

namespace adasum::detail::aten {

/// What copies of a space share.
struct workspace {
  workspace(at::Device on, const std::string& processor)
      : device(on),
        up(on),
        rounding(c10::DeviceTypeName(on.type(), true) + (processor.empty() ? "" : " " + processor)) {
    // Long sums are cut among threads.
    if (on.is_cpu()) rounding += " threads=" + std::to_string(at::get_num_threads());
  }

  at::Device device;
  uploads up;
  std::string rounding;
};

}  // namespace adasum::detail::aten
