// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/version.hpp>

#if ADASUM_VERSION_MAJOR != MAJOR || ADASUM_VERSION_MINOR != MINOR || ADASUM_VERSION_PATCH != PATCH
#error "the macros are not the project's version"
#endif
#if ADASUM_VERSION < 100
#error "no version older than 0.1.0 has these macros"
#endif

static_assert(adasum::version_major == MAJOR && adasum::version_minor == MINOR && adasum::version_patch == PATCH);
static_assert(ADASUM_VERSION / 10000 == MAJOR && ADASUM_VERSION / 100 % 100 == MINOR && ADASUM_VERSION % 100 == PATCH);
