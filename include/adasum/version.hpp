// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

/// The version of the library, for #if and for code. CMake and the installed packages read it from these lines.
#define ADASUM_VERSION_MAJOR 0
#define ADASUM_VERSION_MINOR 1
#define ADASUM_VERSION_PATCH 0

/// One number that grows with the version, for comparisons: 10000 major + 100 minor + patch.
#define ADASUM_VERSION (10000 * ADASUM_VERSION_MAJOR + 100 * ADASUM_VERSION_MINOR + ADASUM_VERSION_PATCH)

namespace adasum {

inline constexpr int version_major = ADASUM_VERSION_MAJOR;
inline constexpr int version_minor = ADASUM_VERSION_MINOR;
inline constexpr int version_patch = ADASUM_VERSION_PATCH;

}  // namespace adasum
