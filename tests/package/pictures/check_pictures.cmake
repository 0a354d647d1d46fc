# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P check_pictures.cmake FOLDER
# Checks the pictures of all pages in FOLDER and in FOLDER/docs: each is there for light pages and for dark ones, and has a text
# for those who cannot see it; and each picture in FOLDER/docs/images is shown somewhere. In a page it looks like this:
#
#   <picture>
#     <source media="(prefers-color-scheme: dark)" srcset="images/NAME-dark.svg">
#     <img alt="What is to be seen" src="images/NAME.svg">
#   </picture>
cmake_minimum_required(VERSION 3.25)

math(EXPR last "${CMAKE_ARGC} - 1")
file(REAL_PATH "${CMAKE_ARGV${last}}" root)
file(GLOB pages "${root}/*.md")
file(GLOB_RECURSE pages_of_docs "${root}/docs/*.md")
set(pictures 0)
set(problems 0)
set(shown "")

macro(problem text)
  message("${text}")
  math(EXPR problems "${problems} + 1")
endmacro()

foreach(page IN LISTS pages pages_of_docs)
  cmake_path(GET page PARENT_PATH folder)
  cmake_path(RELATIVE_PATH page BASE_DIRECTORY "${root}" OUTPUT_VARIABLE name)
  file(READ "${page}" text)
  string(REGEX REPLACE "[][;]" " " text "${text}")  # what would split a list
  string(REGEX MATCHALL "<picture>" begun "${text}")
  string(REGEX MATCHALL
    "<picture>[ \n]*<source media=\"\\(prefers-color-scheme: dark\\)\" srcset=\"[^\"]*\">[ \n]*<img[^>]*>[ \n]*</picture>"
    found "${text}")
  list(LENGTH begun number_begun)
  list(LENGTH found number_found)
  if(NOT number_begun EQUAL number_found)
    problem("${name}: ${number_found} of ${number_begun} pictures are written as this script says")
  endif()
  foreach(picture IN LISTS found)
    math(EXPR pictures "${pictures} + 1")
    string(REGEX MATCH "srcset=\"([^\"]*)\"" _ "${picture}")
    set(dark "${CMAKE_MATCH_1}")
    string(REGEX MATCH "src=\"([^\"]*)\"" _ "${picture}")
    set(light "${CMAKE_MATCH_1}")
    if(NOT picture MATCHES "alt=\"[^\"]+\"")
      problem("${name}: ${light} has no alternative text")
    endif()
    string(REGEX REPLACE "\\.svg$" "-dark.svg" expected "${light}")
    if(NOT dark STREQUAL expected)
      problem("${name}: ${light} has ${dark} beside it")
    endif()
    foreach(file IN ITEMS "${light}" "${dark}")
      cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${folder}" NORMALIZE OUTPUT_VARIABLE path)
      list(APPEND shown "${path}")
      if(NOT EXISTS "${path}")
        cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${root}" OUTPUT_VARIABLE path)
        problem("${name}: ${path} does not exist")
      endif()
    endforeach()
  endforeach()
  string(REGEX MATCHALL "!  *[^()]*\\([^)]*\\.svg\\)" plain "${text}")  # the brackets are gone
  foreach(picture IN LISTS plain)
    string(REGEX MATCH "\\(([^()]*)\\)$" _ "${picture}")
    problem("${name} shows ${CMAKE_MATCH_1} on dark pages, too")
  endforeach()
endforeach()

file(GLOB images "${root}/docs/images/*.svg")
foreach(image IN LISTS images)
  if(NOT image IN_LIST shown)
    cmake_path(RELATIVE_PATH image BASE_DIRECTORY "${root}" OUTPUT_VARIABLE name)
    problem("${name}: no page shows it")
  endif()
endforeach()

if(pictures EQUAL 0)
  message(FATAL_ERROR "there is no picture in ${root}")
elseif(problems GREATER 0)
  message(FATAL_ERROR "${problems} problems with ${pictures} pictures")
endif()
message("${pictures} pictures are there, on light pages and on dark ones")
