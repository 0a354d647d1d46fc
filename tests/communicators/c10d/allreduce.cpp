// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/doctest_beside_torch.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <adasum/torch.hpp>

#include "support/gloo_world.hpp"
#include "support/random_gradients.hpp"
#include "support/reduction.hpp"

namespace test_of_communicators_c10d_allreduce {

using namespace adasum::test;

namespace {

const adasum::serial_space on_host;
const adasum::aten_space on_device(at::kCPU);

/// One that sends what aten_space has on the CPU as it sends what is on a device.
adasum::c10d_communicator communicator_for_devices() {
  const auto group = gloo_group();
  return adasum::c10d_communicator(group, std::chrono::minutes(30), group);
}

/// The same elements as a tensor, which owns them.
template <class T>
at::Tensor tensor_of(const std::vector<T>& values, at::ScalarType type) {
  auto tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(type));
  std::ranges::copy(values, adasum::elements<T>(tensor).begin());
  return tensor;
}

/// Every rank makes the gradients of all, and computes what they must get.
template <class T, class Space>
void check_plans(const Space& space, const adasum::c10d_communicator& comm, at::ScalarType type) {
  const auto own = static_cast<std::size_t>(comm.rank());
  for (const std::size_t length : {0u, 7u, 3000u, 40'000u}) {
    CAPTURE(length);
    const adasum::segments segs(random_segments(length, 3, length + 1));
    const auto gradients = random_gradients<T>(static_cast<std::size_t>(comm.size()), length, length + 2);
    const auto expected = expectation::of<T>(adasum::rules::adasum{}, gradients, segs);
    const auto check = [&](const at::Tensor& result, const adasum::report& found) {
      const auto elements = adasum::elements<T>(result);
      check_reduced(reduced<T>{{elements.begin(), elements.end()}, found}, expected, segs);
    };
    auto single = tensor_of(gradients[own], type);
    check(single, adasum::adasum_allreduce(space, comm, adasum::elements<T>(single), segs));

    auto plan = adasum::plan_allreduce<T>(space, comm, segs);
    auto posted = tensor_of(gradients[own], type);
    plan.start(adasum::elements<T>(posted));
    while (!plan.test()) std::this_thread::yield();
    check(posted, plan.wait());
    CHECK(at::equal(single, posted));
  }
}

template <class Space>
void check_types(const Space& space, const adasum::c10d_communicator& comm) {
  check_plans<float>(space, comm, at::kFloat);
  check_plans<double>(space, comm, at::kDouble);
  check_plans<c10::Half>(space, comm, at::kHalf);
  check_plans<c10::BFloat16>(space, comm, at::kBFloat16);
}

}  // namespace

TEST_CASE("tensors of each element type, by single calls and by posted plans") {
  check_types(on_host, adasum::c10d_communicator(gloo_group()));
}

TEST_CASE("a device's, through the host and from device to device") {
  check_types(on_device, adasum::c10d_communicator(gloo_group()));
  check_types(on_device, communicator_for_devices());
}

namespace {

/// Measures once, and then fails when it is told.
struct failing_space : adasum::aten_space {
  using aten_space::aten_space;
  template <adasum::scalar T>
  void measure(const adasum::slice& window, std::span<const T* const> vectors, double* gram) const {
    if (*fails) throw std::runtime_error("this device has failed");
    aten_space::measure(window, vectors, gram);
  }
  std::shared_ptr<bool> fails = std::make_shared<bool>(false);
};

}  // namespace

TEST_CASE("a device that fails between stages: nobody waits for what is not sent") {
  for (const auto& comm : {communicator_for_devices(), adasum::c10d_communicator(gloo_group())}) {
    const failing_space failing(at::kCPU);
    std::vector<float> gradient(1000, static_cast<float>(comm.rank()) + 1);
    auto plan = adasum::plan_allreduce<float>(failing, comm, gradient.size(), adasum::schedules::recursive_halving{});
    CHECK_NOTHROW(plan(gradient));
    *failing.fails = comm.rank() == 0;
    if (comm.size() > 2) CHECK_THROWS(plan(gradient));
    *failing.fails = false;
    CHECK_NOTHROW(plan(gradient));
  }
}

TEST_CASE("ranks that disagree all throw") {
  const auto comm = communicator_for_devices();
  if (comm.size() == 1) return;
  const auto check = [&](const auto& anywhere) {
    std::vector<float> gradient(comm.rank() == 0 ? 10 : 11, 1.0f);
    CHECK_THROWS_AS(adasum::adasum_allreduce(anywhere, comm, gradient), adasum::agreement_error);
    std::vector<float> same(10, 1.0f);
    CHECK_NOTHROW(adasum::adasum_allreduce(anywhere, comm, same));
  };
  check(on_host);
  check(on_device);
}

}  // namespace test_of_communicators_c10d_allreduce
