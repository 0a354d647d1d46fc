// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <limits>

#if __has_include(<sys/statvfs.h>)
#include <sys/statvfs.h>
#endif

namespace adasum::detail {

/// Bytes for which there is room where MPI libraries keep memory that processes share: /dev/shm on Linux, which is
/// small in containers (64 MB, most often). Asked for more, one rank may get an error while the others wait, or a
/// process may be killed when it first writes there. Where there is no such place, nothing is known, and nothing is in
/// the way.
inline std::uint64_t room_to_share() {
#if __has_include(<sys/statvfs.h>)
  struct statvfs found;
  if (statvfs("/dev/shm", &found) == 0) return std::uint64_t{found.f_bavail} * found.f_frsize;
#endif
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace adasum::detail
