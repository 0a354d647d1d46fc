# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   adasum_find_or_build(<name>)
#       From its sources if FETCHCONTENT_SOURCE_DIR_<NAME> says where they are (machines without a network); else the package
#       that is installed, if there is one.
include(FetchContent)

macro(adasum_find_or_build name)
  string(TOUPPER ${name} upper_name)
  if(FETCHCONTENT_SOURCE_DIR_${upper_name})
    FetchContent_Declare(${name})
    FetchContent_MakeAvailable(${name})
  else()
    find_package(${name} QUIET)
  endif()
endmacro()
