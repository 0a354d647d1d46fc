// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

// The C++ bindings that MPI 3 removed are not used: their headers take half a second to compile, and bring warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
// The ABI of MPI 5: which library it will be is not known. Beside its own ABI, Open MPI 6 says -1.
#if defined(MPI_ABI_VERSION)
#if MPI_ABI_VERSION > 0
#define ADASUM_MPI_ABI
#endif
#endif
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
