// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's program, for `nvcc -std=c++20` and no other flag: all local calls, for all scalars, with a rule of its own.
#include <adasum/combine.hpp>
#include <adasum/exec/cuda.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/rules/adacons.hpp>
#include <adasum/rules/adasum_linear.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/multi_krum.hpp>
#include <adasum/rules/sum.hpp>
#include <adasum/rules/unit_mean.hpp>
#include <adasum/tree.hpp>

#include <span>
#include <string_view>
#include <vector>

/// Calls that wait run a rule on the host; any will do.
struct rule_for_the_host {
  static constexpr std::string_view name = "half";
  constexpr adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
};

/// Calls that only enqueue run it on the device.
#ifdef ADASUM_TEST_RULE_FOR_THE_HOST
using enqueued_rule = rule_for_the_host;
#else
struct enqueued_rule {
  static constexpr std::string_view name = "half";
  ADASUM_HOST_DEVICE adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
};
#endif

template <class T>
void every_call(const adasum::cuda_space& exec, std::span<T> a, std::span<T> b) {
  const std::vector<std::span<T>> all{a, b, a};
  const std::vector<const T*> addresses{a.data(), b.data(), a.data()};
  const adasum::segments layers{a.size()};
  adasum::adasum_pair(exec, a, b, a, layers);
  adasum::adasum_tree(exec, all, a, layers);
  adasum::enqueue_adasum_pair(exec, a, b, a, layers);
  adasum::enqueue_adasum_tree(exec, all, a, layers);

  adasum::combine(exec, all, a, adasum::rules::adacons{});
  adasum::combine(exec, all, a, adasum::rules::adasum_linear{});
  adasum::combine(exec, all, a, adasum::rules::mean{});
  adasum::combine(exec, all, a, adasum::rules::multi_krum{});
  adasum::combine(exec, all, a, adasum::rules::sum{});
  adasum::combine(exec, all, a, adasum::rules::unit_mean{});
  adasum::combine(exec, all, a, rule_for_the_host{});

  const auto enqueue = [&](const auto& rule) {
    exec.enqueue_combine(rule, whole(layers), std::span<const T* const>(addresses), a.data());
  };
  enqueue(adasum::rules::mean{});
  enqueue(adasum::rules::sum{});
  enqueue(enqueued_rule{});
}

int main() {
  thrust::device_vector<float> a(1000), b(1000);
  const adasum::cuda_space exec;
  adasum::enqueue_adasum_pair(exec, a, b, a);
  every_call<float>(exec, {}, {});
#ifndef ADASUM_TEST_RULE_FOR_THE_HOST  // one scalar is enough for a rule
  every_call<double>(exec, {}, {});
  every_call<__half>(exec, {}, {});
  every_call<__nv_bfloat16>(exec, {}, {});
#endif
  adasum::adasum_pair(adasum::serial_space{}, std::vector<float>(3), std::vector<float>(3), std::vector<float>(3));
}
