#!/bin/bash
# Every stressor of stress-ng's class interrupt: signals and timers.
#: timeout 900
#: mem 2G
. "$(dirname "$0")/../lib.sh"
begin
run_class interrupt
finish
