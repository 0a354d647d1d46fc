// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/doctest_beside_torch.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <adasum/communicators/c10d.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/plan.hpp>
#include <adasum/schedules/shared_memory.hpp>

#include "support/gloo_world.hpp"

namespace test_of_communicators_c10d_node_memory {

/// Memory that the processes of a host share.

using namespace adasum::test;

static_assert(adasum::shared_window<adasum::c10d_communicator::memory>);
static_assert(adasum::shared_memory_communicator<adasum::c10d_communicator>);

namespace {

const adasum::serial_space space;

/// How many files this process has made whose names are still there.
std::ptrdiff_t own_files() {
  const auto own = "adasum." + std::to_string(getpid()) + ".";
  return std::ranges::count_if(std::filesystem::directory_iterator(adasum::detail::shared_file::directory()),
                               [&](const auto& entry) { return entry.path().filename().string().starts_with(own); });
}

}  // namespace

TEST_CASE("zero at first, aligned, and each rank's own") {
  const adasum::c10d_communicator comm(gloo_group());
  for (const std::size_t bytes : {0u, 64u, 100'000u}) {
    CAPTURE(bytes);
    const auto memory = comm.share(bytes);
    CHECK(memory.ranks().size() == static_cast<std::size_t>(comm.size()));
    for (std::size_t rank = 0; rank < memory.ranks().size(); ++rank) {
      CHECK(memory.ranks()[rank] == static_cast<int>(rank));
      CHECK(reinterpret_cast<std::uintptr_t>(memory.of(rank)) % 64 == 0);
      CHECK(std::ranges::count(std::span(memory.of(rank), bytes), std::byte{0}) == static_cast<std::ptrdiff_t>(bytes));
    }
    comm.share(1);  // all have looked
    std::ranges::fill(std::span(memory.of(static_cast<std::size_t>(comm.rank())), bytes),
                      static_cast<std::byte>(comm.rank() + 1));
    comm.share(1);
    for (std::size_t rank = 0; rank < memory.ranks().size(); ++rank)
      CHECK(std::ranges::count(std::span(memory.of(rank), bytes), static_cast<std::byte>(rank + 1)) ==
            static_cast<std::ptrdiff_t>(bytes));
    comm.share(1);
  }
}

TEST_CASE("more than there is: an error on every rank, and the communicator works on") {
  const adasum::c10d_communicator comm(gloo_group());
  if (comm.size() == 1 || !std::filesystem::exists("/dev/shm")) return;
  constexpr auto everything = std::size_t{1} << 50;
  CHECK_THROWS_WITH_AS(comm.share(comm.rank() == 0 ? everything : 10),
                       doctest::Contains("adasum::c10d_communicator: memory cannot be shared: rank "),
                       adasum::shared_memory_error);
  const auto memory = comm.share(100);
  CHECK(memory.ranks().size() == static_cast<std::size_t>(comm.size()));
}

TEST_CASE("no name stays behind, and a rank that drops its memory is seen to have left") {
  const adasum::c10d_communicator comm(gloo_group());
  std::optional<adasum::c10d_communicator::memory> memory(comm.share(1000));
  CHECK(own_files() == 0);
  const auto last = static_cast<std::size_t>(comm.size() - 1);
  for (std::size_t rank = 0; rank <= last; ++rank) CHECK_FALSE(memory->has_left(rank));
  comm.share(1);
  if (comm.rank() == comm.size() - 1) memory.reset();
  comm.share(1);
  if (memory) CHECK(memory->has_left(last) == (comm.size() > 1));
  comm.share(1);
}

TEST_CASE("gradients of ranks on one host are combined in shared memory, unless a schedule sends messages") {
  const adasum::c10d_communicator comm(gloo_group());
  std::vector<float> mine(10'000, static_cast<float>(comm.rank() + 1));
  auto plan = adasum::plan_allreduce<float>(space, comm, mine.size());
  plan(mine);
  CHECK((plan.last_report().schedule() == "shared_memory") == (comm.size() > 1));
}

// The last, as processes leave it for good.
TEST_CASE("a rank that is gone: the others have an error at once") {
  const adasum::c10d_communicator comm(gloo_group());
  if (comm.size() == 1) return;
  std::vector<float> mine(10'000, 1);
  std::optional plan(adasum::plan_allreduce<float>(space, comm, mine.size(), adasum::schedules::shared_memory{},
                                                   {.check_agreement = false}));
  (*plan)(mine);
  if (comm.rank() == comm.size() - 1) {
    plan.reset();
  } else {
    const auto begin = std::chrono::steady_clock::now();
    const auto last = "rank " + std::to_string(comm.size() - 1) + " has left";
    try {
      (*plan)(mine);
      FAIL_CHECK("no error");
    } catch (const adasum::communication_error& error) {  // seen by this rank, or heard from another that saw it
      const std::string text = error.what();
      const bool names_one =
          text.find(last) != std::string::npos || text.find("heard that another one had") != std::string::npos;
      CHECK_MESSAGE(names_one, text);
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  }
  // A rank that has seen it stays until all have: the others would name the first that leaves.
  const adasum::c10d_communicator goodbye(gloo_group());
  goodbye.share(1);
}

}  // namespace test_of_communicators_c10d_node_memory
