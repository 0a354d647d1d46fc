#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# every_call.sh ROOT: whether recorder.cpp knows every call of MPI that the library makes.
set -euo pipefail
cd "$1"

# These may be called at any time, by any thread, and make nothing.
harmless=(MPI_{Initialized,Finalized,Query_thread,Is_thread_main,Error_class,Error_string,Get_count,Get_library_version,Comm_fromint}
  MPIX_{Query_cuda_support,GPU_query_support})
unknown=$(comm -23 \
  <(grep -rhoE --include='*.[ch]pp' '\bMPIX?_[A-Z][A-Za-z_]+\(' include/adasum src | sort -u) \
  <({ grep -hoE '^int MPIX?_[A-Za-z_]+\(' tests/mpi_usage/recorder.cpp | sed 's/^int //'; printf '%s(\n' "${harmless[@]}"; } |
    sort -u))
[[ -z $unknown ]] || { echo "recorder.cpp does not know ${unknown//$'\n'/, }" >&2; exit 1; }
