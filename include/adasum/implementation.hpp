// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The library's functions that are compiled once. Without CMake: define ADASUM_COMPILED for all sources of a program
/// (-DADASUM_COMPILED; for what needs MPI, -DADASUM_COMPILED_MPI as well), and include this in one of them, before any other
/// header of the library.

#define ADASUM_IMPLEMENTATION
#if defined(ADASUM_COMPILED_MPI)
#define ADASUM_MPI_IMPLEMENTATION
#endif

#include "core/config.hpp"

#if !defined(ADASUM_COMPILED)
#error "define ADASUM_COMPILED for all sources of the program (-DADASUM_COMPILED), not only for this one"
#elif !ADASUM_DEFINITIONS
#error "include <adasum/implementation.hpp> before the other headers of the library"
#endif

#include "adasum.hpp"
#include "build_information.hpp"
#include "chrome_trace.hpp"
#include "exec/serial/kernels.hpp"
#include "exec/serial/tables.hpp"
#include "machine_file.hpp"
#include "rules/named.hpp"

namespace adasum::detail::serial {
template struct kernel_tables<number_format::binary64>;
template struct kernel_tables<number_format::binary32>;
template struct kernel_tables<number_format::binary16>;
template struct kernel_tables<number_format::bfloat16>;
}  // namespace adasum::detail::serial

namespace adasum::detail {
template space_table table_of_space<float, serial_space>;
template space_table table_of_space<double, serial_space>;
template rule_table table_of_rule<rules::adasum>;
template schedule_table table_of_schedule<schedules::automatic>;
}  // namespace adasum::detail

#if defined(ADASUM_COMPILED_MPI)
#include "mpi.hpp"

namespace adasum::detail {
template communicator_table table_of_communicator<mpi_communicator, serial_space>;
}  // namespace adasum::detail
#endif
