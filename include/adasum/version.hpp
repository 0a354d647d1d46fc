// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

/// The major version of the library, for `#if`; version_major is the same for code. CMake and the installed packages read
/// it from these lines.
#define ADASUM_VERSION_MAJOR 0
/// The minor version; version_minor.
#define ADASUM_VERSION_MINOR 1
/// The patch; version_patch.
#define ADASUM_VERSION_PATCH 0

/// One number that grows with the version, for comparisons: 10000 major + 100 minor + patch.
#define ADASUM_VERSION (10000 * ADASUM_VERSION_MAJOR + 100 * ADASUM_VERSION_MINOR + ADASUM_VERSION_PATCH)

namespace adasum {

/// The first number of the version.
inline constexpr int version_major = ADASUM_VERSION_MAJOR;
/// The second number of the version.
inline constexpr int version_minor = ADASUM_VERSION_MINOR;
/// The third number of the version.
inline constexpr int version_patch = ADASUM_VERSION_PATCH;

}  // namespace adasum
