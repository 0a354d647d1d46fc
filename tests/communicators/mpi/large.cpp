// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

/// A gradient of more than INT_MAX elements and more than 4 GB: two ranks, 2³¹ + 5 elements of 16 bits each.
/// 1.5 times that is needed on each rank: the gradient, and room for half of the other one.

namespace {

/// bfloat16 by its bits, since compilers differ in what they call it.
struct bfloat16 {
  std::uint16_t bits;
};

}  // namespace

template <>
struct adasum::scalar_traits<bfloat16> : adasum::stored_as<adasum::number_format::bfloat16> {};

namespace {

constexpr std::size_t elements = (std::size_t{1} << 31) + 5;
constexpr bfloat16 zero{0}, one{0x3f80}, two{0x4000}, three{0x4040};

/// MemAvailable in KiB; 0 where the system does not tell.
std::size_t available_memory() {
  std::ifstream table("/proc/meminfo");
  for (std::string key; table >> key;) {
    if (std::size_t kilobytes = 0; key == "MemAvailable:" && table >> kilobytes) return kilobytes;
    table.ignore(256, '\n');
  }
  return 0;
}

/// Whether `value` stands in [begin, end).
bool filled(const std::vector<bfloat16>& gradient, std::size_t begin, std::size_t end, bfloat16 value) {
  for (std::size_t i = begin; i < end; ++i)
    if (gradient[i].bits != value.bits) {
      std::fprintf(stderr, "element %zu is %#x, not %#x\n", i, gradient[i].bits, value.bits);
      return false;
    }
  return true;
}

/// Three segments, of which the last has five elements beyond 2³¹. In the first, the ranks hold the same (so the mean
/// is that); in the second, rank 0 holds zero (so it is neutral); in the last, 1 and 3, collinear (so the mean is 2).
bool reduce_large_gradient() {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  constexpr std::size_t first = elements / 3, last = elements - 5;
  const bool is_first = comm.rank() == 0;
  std::vector<bfloat16> gradient(elements, is_first ? zero : three);
  std::fill_n(gradient.begin(), first, one);
  std::fill(gradient.begin() + static_cast<std::ptrdiff_t>(last), gradient.end(), is_first ? one : three);
  const auto start = std::chrono::steady_clock::now();
  const auto found = adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient,
                                              adasum::segments{first, last - first, elements - last},
                                              adasum::schedules::recursive_halving{});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (is_first) std::printf("%zu elements, %zu bytes sent, %.1f s\n", elements, found.bytes_sent(), took.count());
  return found.bytes_sent() > elements * sizeof(bfloat16) && filled(gradient, 0, first, one) &&
         filled(gradient, first, last, three) && filled(gradient, last, elements, two);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  constexpr std::size_t needed = 16;  // GiB
  int enough = available_memory() >> 20 >= needed, all_enough = 0, failed = 0, any_failed = 0;
  MPI_Allreduce(&enough, &all_enough, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!all_enough) {
    std::printf("skipped: less than %zu GiB of memory are available\n", needed);
    MPI_Finalize();
    return ADASUM_SKIPPED;
  }
  try {
    failed = !reduce_large_gradient();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    failed = 1;
  }
  MPI_Allreduce(&failed, &any_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
