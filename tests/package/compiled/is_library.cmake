# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   cmake -DNM=<nm> -DPROGRAM=<program> -P is_library.cmake      fails unless the program's engine is the library's: a strong
#                                                                symbol (T), where inline functions are weak ones (W).
execute_process(COMMAND "${NM}" -C "${PROGRAM}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES " T adasum::detail::run_once\\(")
  message(FATAL_ERROR "${PROGRAM} has the engine of a source that reads the definitions")
endif()
