// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages of memory of a device, the emulated one, whose memory the host cannot touch: staged in memory of the host.
#include <doctest/doctest.h>

#include <mpi.h>

#include <array>
#include <cstddef>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <adasum/communicators/mpi.hpp>
#include <adasum/exec/cuda.hpp>

#include "emulated_cuda/runtime.hpp"
#include "support/allocations.hpp"
#include "support/mpi_world.hpp"

namespace test_of_communicators_mpi_device_exchange {

using namespace adasum::test;
using adasum::cuda_space;
using adasum::device_messages;
using adasum::incoming;
using adasum::mpi_communicator;
using adasum::outgoing;

namespace {

constexpr auto on_device = adasum::memory_kind::space;
int next() { return (world_rank() + 1) % world_size(); }
int previous() { return (world_rank() + world_size() - 1) % world_size(); }

/// Elements in memory of the device.
class device_elements {
 public:
  device_elements(const cuda_space& exec, const std::vector<float>& values)
      : exec_(exec), size_(values.size()), memory_(exec.allocate<float>(size_)) {
    exec_.upload(values.data(), memory_.data(), bytes().size());
    exec_.fence();
  }
  std::span<std::byte> bytes() const { return std::as_writable_bytes(std::span(memory_.data(), size_)); }
  std::vector<float> values() const {
    std::vector<float> copy(size_);
    exec_.download(memory_.data(), copy.data(), bytes().size());
    exec_.fence();
    return copy;
  }

 private:
  cuda_space exec_;
  std::size_t size_;
  decltype(exec_.allocate<float>(0)) memory_;
};

std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(1000 * rank));
  return values;
}

std::string message_of(const mpi_communicator& comm, const cuda_space& exec, std::span<const outgoing> out,
                       std::span<const incoming> in) {
  try {
    comm.exchange(exec, out, in);
  } catch (const adasum::error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("messages of the device and of the host in one exchange, in one piece and in many") {
  if (world_size() < 2) return;
  const cuda_space exec{cudaStream_t{}};
  for (const std::size_t piece_limit : {std::size_t{1000}, mpi_communicator::default_piece_limit}) {
    CAPTURE(piece_limit);
    const mpi_communicator comm(MPI_COMM_WORLD, piece_limit, device_messages::staged);
    for (const std::size_t count : {10u, 5000u, 600'000u}) {  // of the last, staging makes several pieces
      const device_elements mine(exec, values_of(comm.rank(), count)), theirs(exec, std::vector<float>(count));
      std::array<int, 2> hosts{comm.rank(), 7}, theirs_on_host{};
      const std::array out{outgoing{next(), mine.bytes(), on_device},
                           outgoing{next(), std::as_bytes(std::span(hosts))}};
      const std::array in{incoming{previous(), theirs.bytes(), on_device},
                          incoming{previous(), std::as_writable_bytes(std::span(theirs_on_host))}};
      CHECK(message_of(comm, exec, out, in) == "");
      CHECK(theirs.values() == values_of(previous(), count));
      CHECK(theirs_on_host == std::array<int, 2>{previous(), 7});
    }
  }
}

TEST_CASE("a rank that has failed withholds and discards; its memory stays as it was, and the next rank is told") {
  if (world_size() < 2) return;
  const cuda_space exec{cudaStream_t{}};
  const mpi_communicator comm(MPI_COMM_WORLD, 1000, device_messages::staged);
  const bool failed = comm.rank() == 0;
  const device_elements mine(exec, values_of(comm.rank(), 600)), theirs(exec, std::vector<float>(600, -1));
  const outgoing out{next(), mine.bytes(), on_device, failed};
  const incoming in{previous(), theirs.bytes(), on_device, failed};
  const auto message = message_of(comm, exec, std::span(&out, 1), std::span(&in, 1));
  if (previous() == 0)
    CHECK(message == "adasum::mpi_communicator: rank 1: rank 0 sent 0 bytes instead of the expected 1000");
  else
    CHECK(message == "");
  if (failed) CHECK(theirs.values() == std::vector<float>(600, -1));
  if (!failed && previous() != 0) CHECK(theirs.values() == values_of(previous(), 600));
}

TEST_CASE("a device that breaks: its rank reports it, the next one is told, and nobody hangs") {
  if (world_size() < 2) return;
  const cuda_space exec{cudaStream_t{}};
  const mpi_communicator comm(MPI_COMM_WORLD, 1000, device_messages::staged);
  const device_elements mine(exec, values_of(comm.rank(), 600)), theirs(exec, std::vector<float>(600));
  const outgoing out{next(), mine.bytes(), on_device};
  const incoming in{previous(), theirs.bytes(), on_device};
  bool device_failed = false, peer_failed = false;
  emulated_cuda::break_device(comm.rank() == 0);
  try {
    comm.exchange(exec, std::span(&out, 1), std::span(&in, 1));
  } catch (const adasum::cuda_error&) {
    device_failed = true;
  } catch (const adasum::communication_error&) {
    peer_failed = true;
  }
  emulated_cuda::break_device(false);
  CHECK(device_failed == (comm.rank() == 0));
  CHECK(peer_failed == (previous() == 0));
  // And the communicator works on.
  CHECK(message_of(comm, exec, std::span(&out, 1), std::span(&in, 1)) == "");
  CHECK(theirs.values() == values_of(previous(), 600));
}

TEST_CASE("memory short on one rank: an exchange is either not begun, or made to its end") {
  if (world_size() < 2) return;
  const cuda_space exec{cudaStream_t{}};
  const device_elements mine(exec, values_of(world_rank(), 600));
  int ran_out = 1;
  for (std::size_t n = 0; ran_out; ++n) {
    CAPTURE(n);
    const mpi_communicator comm(MPI_COMM_WORLD, 1000, device_messages::staged);
    const device_elements first(exec, std::vector<float>(600)), second(exec, std::vector<float>(600));
    const bool bad = comm.rank() == 0;
    const auto exchange = [&] {
      const outgoing out{next(), mine.bytes(), on_device};
      const std::array both{out, out};
      const std::array in{incoming{previous(), first.bytes(), on_device},
                          incoming{previous(), second.bytes(), on_device}};
      try {
        comm.exchange(exec, both, in);
      } catch (const adasum::communication_error&) {  // then it has ended
      }
    };
    std::optional<failing_allocations> short_of_memory;
    if (bad) short_of_memory.emplace(n);
    try {
      exchange();
    } catch (const std::bad_alloc&) {
      CHECK(bad);
      exchange();
    }
    ran_out = short_of_memory && short_of_memory->any();
    short_of_memory.reset();
    MPI_Bcast(&ran_out, 1, MPI_INT, 0, MPI_COMM_WORLD);
    exchange();
    CHECK(first.values() == values_of(previous(), 600));
    CHECK(second.values() == values_of(previous(), 600));
  }
}

}  // namespace test_of_communicators_mpi_device_exchange
