// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

namespace adasum::detail {

/// Threads that its destructor waits for. (libc++ has no std::jthread.)
class joined_threads {
 public:
  joined_threads() = default;
  joined_threads(const joined_threads&) = delete;
  joined_threads& operator=(const joined_threads&) = delete;
  ~joined_threads() {
    for (auto& one : threads_) one.join();
  }

  /// Runs function() on a new one. @throws std::system_error  the system has no more threads
  template <class Function>
  void start(Function&& function) {
    threads_.emplace_back(std::forward<Function>(function));
  }
  /// How many were started.
  std::size_t size() const { return threads_.size(); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace adasum::detail
