// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL on one device: a communicator of one rank. More ranks are tested on the emulated one.
#include <adasum/comm/nccl.hpp>
#include <adasum/comm/routed.hpp>

#include "cuda/support/device.hpp"
#include "support/random_gradients.hpp"

using namespace adasum;
using namespace adasum::test;

TEST_CASE("a communicator of one rank leaves the gradient as it is, and a report is there for who asks") {
  ncclComm_t native = nullptr;
  REQUIRE(ncclCommInitAll(&native, 1, nullptr) == ncclSuccess);
  {
    const stream queue;
    const cuda_space exec(queue);
    const nccl_communicator comm(native);
    CHECK(comm.rank() == 0);
    CHECK(comm.size() == 1);
    const auto g = random_gradients<float>(1, 5000, 1);
    const device_array<float> gradient(g[0]);
    adasum_allreduce(exec, comm, gradient.all());
    auto plan = plan_allreduce_async<float>(exec, comm, segments{100, 4900}, rules::mean{}, schedules::gram{});
    plan(gradient.all());
    auto found = combine_allreduce(exec, comm, rules::unit_mean{}, gradient.all(), segments{5000});
    CHECK(found.contributions() == 1);
    CHECK(found.result_norm(0) == doctest::Approx(1));
    const routed_communicator routed(comm, self_communicator{}, std::vector<int>{0});
    combine_allreduce(exec, routed, rules::adasum{}, gradient.all(), segments{5000});
    CHECK(gradient.values()[7] == doctest::Approx(g[0][7] / found.norm(0, 0)));
  }
  CHECK(ncclCommDestroy(native) == ncclSuccess);
}
