// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <cstdint>
#include <cstdlib>
#include <limits>

#if __has_include(<sys/statvfs.h>)
#include <sys/statvfs.h>
#endif

namespace adasum::detail::mpi {

/// How much memory the processes of this node can still share. MPI libraries keep it in /dev/shm on Linux, which is
/// small in containers (64 MB by default); Open MPI can be told to keep it elsewhere. If more is asked for, one rank may
/// get an error while the others wait, or a process may be killed when it first writes there. Where no such directory
/// exists, nothing is known and nothing is refused. Allocates nothing: other ranks wait while this is found out.
struct shared_memory_limit {
  const char* directory = "/dev/shm";
  std::uint64_t free_bytes = std::numeric_limits<std::uint64_t>::max();

  shared_memory_limit() {
#ifdef OPEN_MPI
    if (const char* const chosen = std::getenv("OMPI_MCA_osc_sm_backing_directory")) directory = chosen;
#endif
#if __has_include(<sys/statvfs.h>)
    struct statvfs found;
    if (statvfs(directory, &found) == 0) free_bytes = std::uint64_t{found.f_bavail} * found.f_frsize;
#endif
  }

  /// Less than is free: MPI needs some for itself, and Open MPI gives an error, on one rank only, unless 5 % more than
  /// it needs is free.
  std::uint64_t usable_bytes() const {
    if (free_bytes == std::numeric_limits<std::uint64_t>::max()) return free_bytes;
    const std::uint64_t kept_free = free_bytes / 16 + (std::uint64_t{64} << 10);
    return free_bytes > kept_free ? free_bytes - kept_free : 0;
  }
};

}  // namespace adasum::detail::mpi
