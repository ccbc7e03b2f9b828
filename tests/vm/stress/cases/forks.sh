#!/bin/bash
# fork, vfork, clone, exec, spawn, daemons, zombies and threads, all at once.
. "$(dirname "$0")/../lib.sh"
begin
run_to_end stress-ng --quiet -t "$LOAD_S" --fork 1 --vfork 1 --clone 1 --exec 1 --spawn 1 --daemon 1 --zombie 1 --zombie-max 500 --pthread 1
finish
