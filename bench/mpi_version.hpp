// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <string>

/// "Open MPI v4.1.4, package …", or the first two lines of "MPICH Version:\t4.0.2\n…": without quotes and line ends.
inline std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, static_cast<std::size_t>(length));
  version.resize(std::min({version.find(','), version.find('\n'), version.size()}));
  std::ranges::replace_if(version, [](char c) { return c == '"' || c == '\\' || c < ' '; }, ' ');
  return version;
}
