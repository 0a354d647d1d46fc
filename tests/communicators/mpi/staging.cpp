// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers in memory of the host for messages of a device: the emulated one.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <adasum/communicators/mpi/staging.hpp>
#include <adasum/exec/cuda.hpp>

#include "emulated_cuda/runtime.hpp"

namespace test_of_communicators_mpi_staging {

using adasum::cuda_space;
using adasum::incoming;
using adasum::outgoing;
using adasum::detail::mpi::staging;
constexpr auto on_device = adasum::memory_kind::space;

namespace {
staging buffers_for(const cuda_space& exec) {
  auto device = adasum::detail::mpi::device_of<cuda_space>::make();
  device->use(&exec);
  return staging(std::move(device));
}
}  // namespace

TEST_CASE("what is downloaded piece by piece and uploaded from the buffers of arrivals is the same, time after time") {
  const cuda_space exec{cudaStream_t{}};
  staging buffers = buffers_for(exec);
  for (const std::size_t count : {250u, 16u, 1250u}) {
    const auto bytes = count * sizeof(float);
    const auto sent = exec.allocate<float>(count), received = exec.allocate<float>(count);
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), static_cast<float>(count));
    exec.upload(values.data(), sent.data(), bytes);
    const outgoing out{1, std::as_bytes(std::span(sent.data(), count)), on_device};
    const incoming in{1, std::as_writable_bytes(std::span(received.data(), count)), on_device};

    buffers.begin(std::span(&out, 1), std::span(&in, 1));
    const auto arrived = buffers.buffer_for(in.bytes);
    constexpr std::size_t piece = 300;
    buffers.start_download(out.bytes, piece);
    const auto downloaded = buffers.next_download();
    CHECK(downloaded.size() == bytes);
    for (std::size_t done = 0; done < bytes; done += piece) {
      const auto size = std::min(piece, bytes - done);
      buffers.wait_for_piece();
      std::memcpy(arrived.data() + done, downloaded.data() + done, size);  // as a message would
      buffers.upload(arrived.subspan(done, size));
    }
    std::array<std::byte, 8> elsewhere{};
    buffers.upload(elsewhere);  // a message of the host: ignored
    buffers.end();

    std::vector<float> result(count);
    exec.download(received.data(), result.data(), bytes);
    exec.fence();
    CHECK(result == values);
  }
}

TEST_CASE("nothing is allocated once the buffers have grown to the size of the exchange") {
  const cuda_space exec{cudaStream_t{}};
  staging buffers = buffers_for(exec);
  std::vector<std::byte> bytes(1000);
  const incoming in{0, bytes, on_device};
  const std::array both{in, in};
  buffers.begin({}, both);
  const auto before = emulated_cuda::count();
  buffers.begin({}, both);
  buffers.begin({}, std::span(&in, 1));
  CHECK(emulated_cuda::count().allocations == before.allocations);
}

TEST_CASE("no buffer is handed out after memory could not be had") {
  const cuda_space exec{cudaStream_t{}};
  staging buffers = buffers_for(exec);
  std::vector<std::byte> bytes(1000);
  const incoming in{0, bytes, on_device};
  emulated_cuda::break_device(true);
  CHECK_THROWS_AS(buffers.begin({}, std::span(&in, 1)), adasum::cuda_error);
  emulated_cuda::break_device(false);
  buffers.begin({}, std::span(&in, 1));
  CHECK(buffers.buffer_for(bytes).data() != nullptr);
}

}  // namespace test_of_communicators_mpi_staging
