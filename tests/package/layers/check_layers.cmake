# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P check_layers.cmake FOLDER
# Checks by the #include lines that each layer, a folder, sees only itself and the layers named here. What lies in no
# folder is the public face and sees everything.
cmake_minimum_required(VERSION 3.25)

# A layer comes after those whose folders hold its own.
set(layers core rules schedule exec comm testing detail detail/local detail/collective)
foreach(layer IN LISTS layers)
  set(${layer}_may_include ${layer} core)
endforeach()
list(APPEND detail_may_include rules)
list(APPEND detail/collective_may_include schedule detail/local)

# The layer that a header belongs to: the folder of that name, however deep the header lies in it. Empty for the root.
function(layer_of header result)
  set(${result} "" PARENT_SCOPE)
  foreach(layer IN LISTS layers)
    if(header MATCHES "^${layer}/")
      set(${result} "${layer}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

math(EXPR last "${CMAKE_ARGC} - 1")
file(REAL_PATH "${CMAKE_ARGV${last}}" root)
file(GLOB_RECURSE headers RELATIVE "${root}" "${root}/*.hpp")
set(violations 0)
set(includes_seen 0)

foreach(header IN LISTS headers)
  if(NOT header MATCHES "/")
    continue()
  endif()
  cmake_path(GET header PARENT_PATH folder)
  layer_of("${header}" layer)
  if(layer STREQUAL "")
    message(FATAL_ERROR "${header}: ${folder}/ is in none of the layers (${layers}): say here what it may include")
  endif()
  file(STRINGS "${root}/${header}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<adasum/)")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "[\"<]([^\">]+)[\">]" ignored "${line}")
    set(target "${CMAKE_MATCH_1}")
    if(target MATCHES "^adasum/")
      string(REGEX REPLACE "^adasum/" "" target "${target}")
    else()
      cmake_path(SET target NORMALIZE "${folder}/${target}")
    endif()
    math(EXPR includes_seen "${includes_seen} + 1")
    layer_of("${target}" target_layer)
    if(target_layer STREQUAL "" OR NOT target_layer IN_LIST ${layer}_may_include)
      message(SEND_ERROR "${header} includes ${target}; ${layer}/ may include only: ${${layer}_may_include}")
      math(EXPR violations "${violations} + 1")
    endif()
  endforeach()
endforeach()

if(includes_seen EQUAL 0)
  message(FATAL_ERROR "no header with an #include line under ${root}")
elseif(violations GREATER 0)
  message(FATAL_ERROR "${violations} includes break the order of the layers")
endif()
message("${includes_seen} includes between the library's headers keep to the order of the layers")
