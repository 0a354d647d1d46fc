# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P check_names.cmake PAGE FOLDER
# Checks that each optional member which a header in FOLDER asks a type for, in a requires-expression, is named on PAGE,
# core/concepts.hpp. What a header uses without asking, no test need look for: the types of tests/support/minimal_types.hpp
# have no such member. Not seen: a member that is asked for by a template of another kind (decltype, std::void_t).
cmake_minimum_required(VERSION 3.25)

math(EXPR last "${CMAKE_ARGC} - 1")
math(EXPR before_last "${CMAKE_ARGC} - 2")
file(REAL_PATH "${CMAKE_ARGV${last}}" folder)
file(READ "${CMAKE_ARGV${before_last}}" page)
file(GLOB_RECURSE headers RELATIVE "${folder}" "${folder}/*.hpp")
# These ask gradients and other arguments what they are.
list(FILTER headers EXCLUDE REGEX "^core/(concepts|gradient|eigen_gradient|scalar)\\.hpp$|^mdspan\\.hpp$|^detail/(gradient_)?arguments\\.hpp$")
# These ask for members that are no longer there, too, or misspelt.
list(FILTER headers EXCLUDE REGEX "^detail/references/refused_members\\.hpp$|^testing/near_misses\\.hpp$")

set(found 0)
set(missing 0)
foreach(header IN LISTS headers)
  file(READ "${folder}/${header}" text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REPLACE ";" " " text "${text}")
  string(REPLACE "[" "(" text "${text}")
  string(REPLACE "]" ")" text "${text}")
  # Up to the end of the statement that the braces begin.
  string(REGEX MATCHALL "requires *(\\([^{}]*\\))? *{[^}]*({[^}]*}[^}]*)*}" expressions "${text}")
  foreach(expression IN LISTS expressions)
    string(REGEX REPLACE "^requires *(\\([^{]*\\))? *{" "" expression "${expression}")
    string(REGEX REPLACE "(std|number_format)::[a-z_0-9:]+" "" expression "${expression}")
    string(REGEX MATCHALL "(\\.|::) *(template *)?[a-z_0-9]+" members "${expression}")
    foreach(member IN LISTS members)
      string(REGEX REPLACE "^(\\.|::) *(template *)?" "" member "${member}")
      math(EXPR found "${found} + 1")
      if(NOT page MATCHES "[^a-zA-Z_]${member}[^a-zA-Z_]")
        message("${header} asks for a member ${member}, which the page does not name")
        math(EXPR missing "${missing} + 1")
      endif()
    endforeach()
  endforeach()
endforeach()

if(found EQUAL 0)
  message(FATAL_ERROR "no requires-expression in the headers under ${folder}")
elseif(missing GREATER 0)
  message(FATAL_ERROR "${missing} members are not on the page of concepts")
endif()
message("${found} members that headers ask for are on the page of concepts")
