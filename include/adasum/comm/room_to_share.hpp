// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#if __has_include(<sys/statvfs.h>)
#include <sys/statvfs.h>
#endif

namespace adasum::detail {

/// Where MPI libraries keep memory that processes share, and how many bytes there is room for: /dev/shm on Linux, which
/// is small in containers (64 MB, most often), unless Open MPI was told otherwise. Asked for more, one rank may get an
/// error while the others wait, or a process may be killed when it first writes there. Where there is no such place,
/// nothing is known, and nothing is in the way.
struct room_to_share {
  std::string directory = "/dev/shm";
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();

  room_to_share() {
    if (const char* const chosen = std::getenv("OMPI_MCA_osc_sm_backing_directory")) directory = chosen;
#if __has_include(<sys/statvfs.h>)
    struct statvfs found;
    if (statvfs(directory.c_str(), &found) == 0) bytes = std::uint64_t{found.f_bavail} * found.f_frsize;
#endif
  }
};

}  // namespace adasum::detail
