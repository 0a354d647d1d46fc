// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL on one device: a communicator of one rank. More ranks are tested on the emulated one.
#include <adasum/adasum.hpp>
#include <adasum/communicators/nccl.hpp>
#include <adasum/enqueued_plan.hpp>

#include "../../examples/12_routed_communicator/routed_communicator.hpp"
#include "support/device.hpp"
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
    enqueue_adasum_allreduce(exec, comm, gradient.all());
    exec.fence();
    CHECK(gradient.values() == g[0]);
    CHECK(adasum_allreduce(exec, comm, gradient.all()).contributions() == 1);
    auto plan = plan_enqueued_allreduce<float>(exec, comm, segments{100, 4900}, rules::mean{}, schedules::all_to_all{});
    plan(gradient.all());
    auto found = combine_allreduce(exec, comm, gradient.all(), rules::unit_mean{}, segments{5000});
    CHECK(found.contributions() == 1);
    CHECK(found.result_norm(0) == doctest::Approx(1));
    const example::routed_communicator routed(comm, self_communicator{}, std::vector<int>{0});
    combine_allreduce(exec, routed, gradient.all(), rules::adasum{}, segments{5000});
    CHECK(gradient.values()[7] == doctest::Approx(g[0][7] / found.norm(0, 0)));
  }
  CHECK(ncclCommDestroy(native) == ncclSuccess);
}
