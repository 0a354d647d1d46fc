#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# script_test.sh: what scripts/cluster promises, without MPI. Status 77 where nodes cannot be made here.
set -uo pipefail
cluster=$(realpath "$(dirname "$0")/../../scripts/cluster")
ADASUM_CLUSTER_STATE=$(mktemp -d)
export ADASUM_CLUSTER_STATE
trap '"$cluster" down; rm -r "$ADASUM_CLUSTER_STATE"' EXIT

failures=0
check() { # WHAT COMMAND...
  "${@:2}" || { echo "failed: $1 (${*:2})"; failures=$((failures + 1)); }
}
equal() { [[ $1 == "$2" ]] || { echo "  '$1' is not '$2'"; return 1; }; }
refuses() { # STATUS TEXT COMMAND...
  local said status=0
  said=$("${@:3}" 2>&1) || status=$?
  equal "$status" "$1" && [[ $said == *"$2"* ]] || { echo "  said: $said"; return 1; }
}
fingerprint() { ip -o link; ip route; mount; ls -A /etc/netns /run/netns 2>/dev/null; }

before=$(fingerprint)
"$cluster" up 2+1 --rate 100mbit
status=$?
((status != 77)) || exit 77
check "up" equal $status 0

check "host names" equal "$("$cluster" on 0 hostname) $("$cluster" on 1 hostname) $("$cluster" on head hostname)" \
  "node0 node1 head"
check "names are resolved" equal "$("$cluster" on 0 getent hosts node1 head | awk '{print $2}' | xargs)" "node1 head"
check "a command's status" refuses 3 "" "$cluster" on 1 bash -c 'exit 3'
check "words stay words" equal "$("$cluster" on 1 printf '<%s>' 'a  b' '$c' "'")" "<a  b><\$c><'>"
check "the directory stays" equal "$(cd / && "$cluster" on 1 pwd)" /
for device in "1 eth0" "head port1" "0 eth0" "head port0"; do
  read -r node name <<<"$device"
  check "the rate of $name" refuses 0 "rate 100Mbit" "$cluster" on "$node" tc qdisc show dev "$name"
done
"$cluster" on 0 touch /dev/shm/mine
check "/dev/shm is a node's own" refuses 1 "" "$cluster" on 1 test -e /dev/shm/mine
check "a node sees its own processes alone" equal "$("$cluster" on 1 bash -c 'pgrep -c sleep')" 1

# A cable that is pulled: node0 reaches node1 before, not meanwhile, and again afterwards.
reaches() { "$cluster" on 0 timeout 2 bash -c 'until ip neigh | grep -q "10.77.0.2 .*\(REACHABLE\|DELAY\|PROBE\)"; do
  : >/dev/udp/10.77.0.2/9; echo x >/dev/udp/10.77.0.2/9; sleep 0.1; done' 2>/dev/null; }
check "node0 reaches node1" reaches
"$cluster" on head ip link set port1 down
"$cluster" on 0 ip neigh flush dev eth0
check "not without the cable" refuses 124 "" reaches
"$cluster" on head ip link set port1 up
check "again" reaches

echo kept >"$ADASUM_CLUSTER_STATE/mine"
head=$(cat "$ADASUM_CLUSTER_STATE/head")
"$cluster" up 2+1 --rate 100mbit
check "what is up, stays" equal "$(cat "$ADASUM_CLUSTER_STATE/head")" "$head"
"$cluster" up 3 --rate none
check "another shape is another cluster" equal "$("$cluster" on 2 hostname)" node2
check "the one before has gone" refuses 1 "" test -e "/proc/${head%% *}/ns/net"
check "not limited" equal "$("$cluster" on 2 tc qdisc show dev eth0 | grep -c tbf)" 0

for shape in 0 x 2x 2+ 3+0 100 ''; do check "shape '$shape'" refuses 2 "" "$cluster" up "$shape"; done
check "a rate that is none" refuses 2 "what rate is 'fast'" "$cluster" up 2 --rate fast
check "an unknown option" refuses 2 "no option '--fast'" "$cluster" up 2 --fast
check "a node that is not there" refuses 2 "no node '7'" "$cluster" on 7 true
check "an unknown MPI" refuses 2 "which MPI is 'lam'" "$cluster" run --mpi lam true
check "nothing to run" refuses 2 "run what?" "$cluster" run
check "help" refuses 0 "scripts/cluster up SHAPE" "$cluster" --help

read -r head _ <"$ADASUM_CLUSTER_STATE/head"
"$cluster" on 1 sleep 1000 &
sleep 0.2
"$cluster" down
wait
check "nothing is left" refuses 1 "" test -e "/proc/$head/ns/net"
check "no file is left but what is not its own" equal "$(cd "$ADASUM_CLUSTER_STATE" && echo *)" "lock mine"
check "down again" "$cluster" down
check "nothing is up" refuses 2 "nothing is up" "$cluster" on 0 true
check "this machine's network and mounts are as before" equal "$(fingerprint)" "$before"

# Where a tool is missing, it says so.
tools=$(mktemp -d)
for tool in bash realpath sed mkdir flock cat tr rm readlink; do ln -s "$(command -v $tool)" "$tools"; done
check "a machine that cannot" refuses 77 "no cluster on this machine: there is no 'ip'" env PATH="$tools" "$cluster" up 2
rm -r "$tools"

((failures == 0)) && echo "all well"
