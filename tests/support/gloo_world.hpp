// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO  // the header below is empty without it
#endif
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <string>

#include <adasum/communicators/c10d.hpp>

/// What the tests of several processes that talk by gloo share; gloo_main.cpp starts them. Checks never leave a test case
/// early in one process alone: the others would wait.
namespace adasum::test {

/// This process among all of them.
struct gloo_process {
  int rank = 0, size = 1;
  c10::intrusive_ptr<::c10d::Store> store;
};
inline gloo_process& this_process() {
  static gloo_process process;
  return process;
}

/// A process group of all processes. Collective; they make their groups in the same order.
inline c10::intrusive_ptr<::c10d::ProcessGroup> gloo_group(
    std::chrono::milliseconds timeout = std::chrono::minutes(5)) {
  static int number = 0;
  const auto& [rank, size, store] = this_process();
  auto options = ::c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(::c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  options->timeout = timeout;
  const auto own = c10::make_intrusive<::c10d::PrefixStore>("group " + std::to_string(number++), store);
  return c10::make_intrusive<::c10d::ProcessGroupGloo>(own, rank, size, options);
}

}  // namespace adasum::test
