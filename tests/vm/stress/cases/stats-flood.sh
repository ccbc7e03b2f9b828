#!/bin/bash
# A bad client of the stats socket: connections by the hundred, garbage, lines without end.
. "$(dirname "$0")/../lib.sh"
umask 0
begin
said=$(setpriv --reuid=65534 --regid=65534 --clear-groups adversary stats 2)
say "without rights: $said"
[[ $said != *connected=* || $said == not_connected_13=* ]] || fail "anybody can connect to the stats socket: $said"
adversary stats "$LOAD_S" >/tmp/flood
say "root: $(cat /tmp/flood)"
assert_match "$(cat /tmp/flood)" 'answered=' "what the flood was told"
finish
