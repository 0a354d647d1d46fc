#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# on_nodes.sh "NODE OF RANK 0 NODE OF RANK 1 ..." MPI SECONDS PROGRAM [ARGUMENT...]
# Runs a program on nodes of scripts/cluster, with its ranks placed like this, for at most so long. The nodes stay up for
# the next test.
set -euo pipefail
cluster=$(dirname "$0")/../../scripts/cluster
nodes=$1 mpi=$2 seconds=$3
shift 3

each=$(tr ' ' '\n' <<<"$nodes")
shape=$(sort -n <<<"$each" | uniq -c | awk '{print $1}' | paste -sd +)
placement=()
sort -nC <<<"$each" || placement=(--round-robin)
"$cluster" up "$shape"
export ADASUM_TEST_NODES=$nodes
"$cluster" run --mpi "$mpi" --timeout "$seconds" "${placement[@]}" -- "$@"
