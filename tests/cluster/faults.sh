#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# faults.sh killed|killed_before|killed_after|cable|lost|stopped|full|cut|late MPI PROGRAM [messages|hierarchical]
# Does something to one of two nodes of two ranks while PROGRAM (under_fault) reduces there. docs/cluster.md says what was
# measured. Nobody may wait for ever: a reduction goes on with the same results, or the run ends.
#   killed   a rank gets SIGKILL: MPI ends the run. _before: between making the plan and its first reduction; _after: when it
#            has reduced for the last time
#   cable    a node's cable is pulled for 2 s: the run goes on
#   lost     a node loses one of a hundred packets that come to it: the run goes on
#   stopped  a rank is stopped for 2 s: the run goes on
#   full     /dev/shm has room on one node only: nobody uses it, and all is well
#   cut      a node's cable is pulled for good, with a timeout of 3 s: every rank gets an error that names another
#   late     a rank is stopped for 8 s, with a timeout of 3 s: likewise, that rank included, when it goes on
set -uo pipefail
cluster=$(dirname "$0")/../../scripts/cluster
fault=$1 mpi=$2 program=$3 schedule=$4
patience=60 length=300000 node=1
export ADASUM_TEST_NODES="0 0 1 1"
[[ $fault != killed_* ]] || export ADASUM_TEST_KILLED=${fault#killed_}

log=$(mktemp)
arguments=(3 "$length" "$schedule")
[[ $fault != cut && $fault != late ]] || arguments+=(3 "$log")
trap 'cat "$log"; rm -f "$log" "$log".*; "$cluster" down' EXIT  # what was done to the nodes ends with them
"$cluster" down
"$cluster" up 2x2 || exit
if [[ $fault == full ]]; then
  length=2200000  # two ranks' are more than that
  "$cluster" on $node mount -o remount,size=16m /dev/shm || exit 77
fi
lose() {
  "$cluster" on $node nft "table inet faults { chain in {
    type filter hook input priority 0; numgen random mod 100 < 1 counter drop; }; }"
}
if [[ $fault == lost ]]; then
  lose && "$cluster" on $node nft delete table inet faults || exit 77  # not every kernel can
fi
"$cluster" run --mpi "$mpi" --timeout $patience -- "$program" "${arguments[@]}" >"$log" 2>&1 &
run=$!
until grep -q reducing "$log" || [[ $fault == killed_before ]]; do
  kill -0 $run 2>/dev/null || { echo "the run ended before it began to reduce"; exit 1; }
  sleep 0.1
done

started=$SECONDS
ranks() { "$cluster" on $node pkill "-$1" --newest --exact "$(basename "$program" | head -c 15)"; }
case $fault in
  killed) ranks KILL ;;
  stopped) ranks STOP && sleep 2 && ranks CONT ;;
  late) ranks STOP && sleep 8 && ranks CONT ;;
  cut) "$cluster" on head ip link set port$node down ;;
  cable) "$cluster" on head ip link set port$node down && sleep 2 && "$cluster" on head ip link set port$node up ;;
  lost) lose ;;
  full | killed_*) ;;
  *) false ;;
esac || { echo "nothing could be done to the ranks"; exit 1; }
if [[ $fault == cut || $fault == late ]]; then
  until ((SECONDS - started > 40)) || [[ $(cat "$log".* 2>/dev/null | wc -l) == 4 ]]; do sleep 0.2; done
  echo "after $((SECONDS - started)) s:"
  grep . "$log".*
  # Each of the four, and the waiting ones say for whom.
  [[ $(grep -l "rank [0-9]" "$log".* | wc -l) == 4 ]] && grep -q "rank [0-9].* within 3 seconds" "$log".*
  exit
fi
wait $run
status=$?
if [[ $fault == lost ]]; then
  "$cluster" on $node nft list table inet faults | grep -o "counter packets [1-9][0-9]*" || { echo "nothing was lost"; exit 1; }
fi
echo "$fault: status $status after $((SECONDS - started)) s"

if [[ $fault == killed_* ]]; then grep -q "rank 3 is killed" "$log" || exit; fi
if [[ $fault == killed* ]]; then
  ((status != 0 && status != 124))  # 124: it had to be ended from outside
else
  ((status == 0)) && grep -q "reductions, the longest took" "$log"
fi
