#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# every_call.sh ROOT: whether recorder.cpp knows every call of MPI that the library makes.
set -euo pipefail
cd "$1"

# These may be called at any time, by any thread, and make nothing; or they come with what MPI libraries add.
harmless=(Initialized Finalized Query_thread Is_thread_main Error_class Error_string Get_count)
unknown=$(comm -23 \
  <(grep -rhoE '\bMPI_[A-Z][a-z_]+\(' include/adasum | sort -u) \
  <({ grep -hoE '^int MPI_[A-Za-z_]+\(' tests/mpi_usage/recorder.cpp | sed 's/^int //'; printf 'MPI_%s(\n' "${harmless[@]}"; } |
    sort -u))
[[ -z $unknown ]] || { echo "recorder.cpp does not know ${unknown//$'\n'/, }" >&2; exit 1; }
