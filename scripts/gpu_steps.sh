# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# For scripts/gpu-check and scripts/gpu-check-torch, which set $out, a folder, and $steps, a file in it.

# step NAME SECONDS COMMAND...: its output goes to a log; what came of it, to $steps. Never beyond the time for all of them.
: >"$steps"
deadline=520
step() {
  local name=$1 limit=$2 started=$SECONDS status
  shift 2
  ((limit <= deadline - SECONDS)) || limit=$((deadline - SECONDS > 5 ? deadline - SECONDS : 5))
  timeout "$limit" "$@" >"$out/$name.log" 2>&1
  status=$?
  echo "$name $status $((SECONDS - started))" | tee -a "$steps"
  return $status
}
