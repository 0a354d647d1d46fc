// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How plans to be enqueued are made, and that ranks meet then. What they compute is in communicators/nccl.cpp.
#include <adasum/adasum.hpp>
#include <adasum/enqueued_plan.hpp>

#include <new>
#include <string>
#include <vector>

#include "support/nccl_group.hpp"

namespace test_of_enqueued_plan {

using namespace adasum;
using namespace adasum::test;

namespace {

struct space_without_room : cuda_space {
  space_without_room(const cuda_space& space, bool is_full) : cuda_space(space), full(is_full) {}
  bool full;

  template <scalar T>
  auto allocate_in_order(std::size_t count) const {
    if (full) throw std::bad_alloc();
    return cuda_space::allocate_in_order<T>(count);
  }
};

}  // namespace

TEST_CASE("a plan to be enqueued is made by all ranks or by none, where they compare") {
  const auto made = [](auto&& make) {
    const auto ranks = on_nccl(3, [&](const nccl_communicator& comm, const cuda_space& exec) {
      make(comm, exec);
      return 0;
    });
    std::vector<std::string> errors;
    for (const auto& rank : ranks) errors.push_back(rank.template message_of<error>().value_or("none"));
    return errors;
  };
  const auto all_say = [](const std::vector<std::string>& errors, const std::string& what) {
    CAPTURE(what);
    for (const auto& error : errors) CHECK_MESSAGE(error.find(what) != std::string::npos, error);
  };
  all_say(made([](const auto& comm, const auto& exec) {
            plan_enqueued_allreduce<float>(exec, comm, comm.rank() == 1 ? 99 : 100, checked(true));
          }),
          "disagree on the length of the gradient: rank 0 has 100, rank 1 has 99");
  all_say(made([](const auto& comm, const auto& exec) {
            auto choices = checked(true);
            if (comm.rank() == 2) choices.nonfinite = nonfinite_policy::raise;
            plan_enqueued_allreduce<float>(exec, comm, 100, choices);
          }),
          "options::nonfinite and options::wire are for plan_allreduce");
  // A rank that finds no memory throws that, and the others are told.
  const auto ranks = on_nccl(3, [](const nccl_communicator& comm, const cuda_space& exec) {
    const space_without_room full{exec, comm.rank() == 1};
    plan_enqueued_allreduce<float>(full, comm, 100, checked(true));
    return 0;
  });
  CHECK(ranks[1].threw<std::bad_alloc>());
  for (const auto r : {0u, 2u})
    CHECK(ranks[r].message_of<communication_error>().value_or("").find("rank 1 has failed") != std::string::npos);
}

}  // namespace test_of_enqueued_plan
