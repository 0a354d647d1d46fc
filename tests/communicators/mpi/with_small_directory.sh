#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# with_small_directory.sh DIRECTORY COMMAND...
# Runs the command where DIRECTORY is a file system of 64 MB, as /dev/shm is in most containers. That takes a mount
# namespace of its own; where the system does not allow one, the command runs with the directory as it is.
directory=$1
shift
mkdir -p "$directory"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1  # one is root in the namespace
if unshare -rm mount -t tmpfs -o size=64m tmpfs "$directory" 2>/dev/null; then
  exec unshare -rm sh -c 'mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@"' "$directory" "$@"
fi
exec "$@"
