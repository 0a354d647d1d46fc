# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ADASUM_SANITIZE=address,undefined or thread: everything built from here on is instrumented, and a finding is fatal.

set(ADASUM_SANITIZE "" CACHE STRING "Argument of -fsanitize= for tests, examples and benchmarks")
set_property(CACHE ADASUM_SANITIZE PROPERTY STRINGS "" "address,undefined" thread)

if(ADASUM_SANITIZE)
  add_compile_options(-fsanitize=${ADASUM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # For tests that do less then: each step takes several times as long.
  add_compile_definitions(ADASUM_TEST_SANITIZED)
  add_link_options(-fsanitize=${ADASUM_SANITIZE})
endif()
