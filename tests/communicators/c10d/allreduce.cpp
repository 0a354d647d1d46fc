// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/doctest_beside_torch.hpp"

#include <cstddef>
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

const adasum::serial_space space;

/// The same elements as a tensor, which owns them.
template <class T>
at::Tensor tensor_of(const std::vector<T>& values, at::ScalarType type) {
  auto tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(type));
  std::ranges::copy(values, adasum::elements<T>(tensor).begin());
  return tensor;
}

/// Every rank makes the gradients of all, and computes what they must get.
template <class T>
void check_plans(at::ScalarType type) {
  const adasum::c10d_communicator comm(gloo_group());
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

}  // namespace

TEST_CASE("tensors of each element type, by single calls and by posted plans") {
  check_plans<float>(at::kFloat);
  check_plans<double>(at::kDouble);
  check_plans<c10::Half>(at::kHalf);
  check_plans<c10::BFloat16>(at::kBFloat16);
}

TEST_CASE("ranks that disagree all throw") {
  const adasum::c10d_communicator comm(gloo_group());
  if (comm.size() == 1) return;
  std::vector<float> gradient(comm.rank() == 0 ? 10 : 11, 1.0f);
  CHECK_THROWS_AS(adasum::adasum_allreduce(space, comm, gradient), adasum::agreement_error);
  std::vector<float> same(10, 1.0f);
  CHECK_NOTHROW(adasum::adasum_allreduce(space, comm, same));
}

}  // namespace test_of_communicators_c10d_allreduce
