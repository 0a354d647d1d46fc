# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D PAGE=docs/tutorial.md -D NAME=1_mean -P check.cmake -- command...
#
# In the page, a block stands below the name of its program, <!-- 1_mean.cpp -->, or below what it prints, <!-- 1_mean.cpp prints -->.
# What is shown must be in the program, and the command must print what is said.
get_filename_component(folder "${PAGE}" DIRECTORY)
file(READ "${PAGE}" page)

# blocks(<result> <comment>): the page's blocks below this comment. Semicolons would be separators of lists.
function(blocks result comment)
  string(REPLACE ";" "\\;" text "${page}")
  string(REGEX MATCHALL "<!-- ${comment} -->\n```[a-z+]*\n[^`]*```" found "${text}")
  list(TRANSFORM found REPLACE "^<!-- [^\n]*\n```[a-z+]*\n" "")
  list(TRANSFORM found REPLACE "```$" "")
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

foreach(file IN ITEMS model.hpp ${NAME}.cpp)
  file(READ "${folder}/tutorial/${file}" source)
  string(REPLACE "." "\\." pattern "${file}")
  blocks(shown "${pattern}")
  if(shown STREQUAL "")
    message(FATAL_ERROR "the page shows nothing of ${file}")
  endif()
  foreach(block IN LISTS shown)
    string(FIND "${source}" "${block}" place)
    if(place EQUAL -1)
      message(FATAL_ERROR "${file} does not hold what the page shows:\n${block}")
    endif()
  endforeach()
endforeach()

set(command "")
set(last -1)
math(EXPR count "${CMAKE_ARGC} - 1")
foreach(i RANGE 1 ${count})
  if(last GREATER -1)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(last ${i})
  endif()
endforeach()
execute_process(COMMAND ${command} OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
blocks(said "${NAME}\\.cpp prints")
if(NOT printed STREQUAL said)
  message(FATAL_ERROR "The page says\n${said}\nand the program prints\n${printed}")
endif()
