// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

namespace adasum::detail {

/// Where an exception leaves a call, waits until all that the space has begun has ended: before memory is freed in which it
/// works, and before the caller has its vectors back.
template <class Space>
class fence_on_failure {
 public:
  /// To be made after that memory, so that it is destroyed before. @param space  lives as long
  explicit fence_on_failure(const Space& space) : space_(space) {}
  fence_on_failure(const fence_on_failure&) = delete;
  fence_on_failure& operator=(const fence_on_failure&) = delete;
  ~fence_on_failure() {
    if (is_dismissed_) return;
    try {
      space_.fence();
    } catch (...) {  // the device has failed: nothing runs there any more
    }
  }

  /// Nothing has failed.
  void dismiss() { is_dismissed_ = true; }

 private:
  const Space& space_;
  bool is_dismissed_ = false;
};

}  // namespace adasum::detail
