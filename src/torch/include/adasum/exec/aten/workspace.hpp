// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <string>
#include <utility>

#include "uploads.hpp"

namespace adasum::detail::aten {

/// What copies of a space share.
struct workspace {
  workspace(at::Device on, const std::string& processor)
      : device(on), up(on), rounding(at::DeviceTypeName(on.type(), true) + (processor.empty() ? "" : " " + processor)) {
    // Sums of one long row are cut among threads.
    if (on.is_cpu()) rounding += " with " + std::to_string(at::get_num_threads()) + " threads";
  }

  at::Device device;
  uploads up;
  std::string rounding;
};

}  // namespace adasum::detail::aten
