// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/comm/mpi.hpp>

#include "support/disagreements.hpp"
#include "support/mpi_world.hpp"

/// Memory that is short on one rank of an MPI program: whichever allocation fails there, no rank waits for ever, and
/// the communicator works afterwards.

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
std::size_t allocations_left = never;
std::size_t failures_in_a_row = 1;

void* allocate(std::size_t size, std::size_t alignment) {
  if (allocations_left == 0) {
    if (--failures_in_a_row == 0) allocations_left = never;
    throw std::bad_alloc();
  }
  if (allocations_left != never) --allocations_left;
  const std::size_t bytes = (size + alignment) / alignment * alignment;
  if (void* const memory = std::aligned_alloc(alignment, bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The array forms call these. Not inlined, so that the compiler does not see malloc on one side and delete on the other.
[[gnu::noinline]] void* operator new(std::size_t size) { return allocate(size, 16); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace adasum::test;

namespace {

const adasum::serial_space space;
const adasum::segments segs{9, 0, 24};

/// What call(comm, gradient) does on a new communicator, with the n'th allocation of one rank failing, and those after it
/// up to `in_a_row`, for each n in turn; then a reduction on the same communicator, which must be right.
template <class Call>
void check_every_allocation(const std::string& name, std::size_t in_a_row, const Call& call) {
  if (world_size() < 2) return;
  CAPTURE(name);
  CAPTURE(in_a_row);
  for (const int culprit : {0, world_size() - 1}) {
    int ran_out = 1;
    for (std::size_t n = 0; ran_out; ++n) {
      CAPTURE(culprit);
      CAPTURE(n);
      const adasum::mpi_communicator comm{MPI_COMM_WORLD};
      const bool bad = comm.rank() == culprit;
      std::vector<double> gradient(segs.total(), 1 + comm.rank());
      const auto end = end_of(std::vector<double>{}, [&](auto&) {
        failures_in_a_row = in_a_row;
        allocations_left = bad ? n : never;
        try {
          call(comm, gradient);
        } catch (...) {
          ran_out = allocations_left == never || failures_in_a_row < in_a_row;
          allocations_left = never;
          throw;
        }
        ran_out = allocations_left == never || failures_in_a_row < in_a_row;
        allocations_left = never;
      });
      MPI_Bcast(&ran_out, 1, MPI_INT, culprit, MPI_COMM_WORLD);
      if (!bad)
        CHECK_MESSAGE(
            (end.how == way::returned || end.how == way::communication_error || end.how == way::agreement_error),
            end.message);
      std::ranges::fill(gradient, 3);
      CHECK_NOTHROW(
          adasum::adasum_allreduce(space, comm, gradient, adasum::schedules::recursive_doubling{}, unchecked));
      CHECK(gradient == std::vector<double>(segs.total(), 3));  // equal: their mean
    }
  }
}

}  // namespace

TEST_CASE("in a single call by messages, on a communicator that has sent none") {
  for (const bool check : {false, true})
    check_every_allocation(check ? "checked" : "unchecked", 1, [&](const auto& comm, auto& gradient) {
      adasum::adasum_allreduce(space, comm, gradient, segs, adasum::schedules::recursive_doubling{},
                               check ? checked : unchecked);
    });
}

TEST_CASE("while a plan is made, and the other ranks are told, on a communicator that has sent nothing") {
  for (const std::size_t in_a_row : {1u, 2u, 3u})
    check_every_allocation("a plan", in_a_row, [&](const auto& comm, auto&) {
      adasum::plan_allreduce<double>(space, comm, segs, adasum::schedules::recursive_doubling{}, unchecked);
    });
}

TEST_CASE("while memory is shared: all ranks get it, or none does") {
  for (const std::size_t in_a_row : {1u, 2u})
    check_every_allocation("share()", in_a_row, [&](const auto& comm, auto&) {
      int shared = 1;
      try {
        comm.share(1000);
      } catch (...) {
        shared = 0;
      }
      const auto left = std::exchange(allocations_left, never);
      int least = 0, most = 0;
      MPI_Allreduce(&shared, &least, 1, MPI_INT, MPI_MIN, comm.native());
      MPI_Allreduce(&shared, &most, 1, MPI_INT, MPI_MAX, comm.native());
      CHECK(least == most);
      allocations_left = left;
    });
}
