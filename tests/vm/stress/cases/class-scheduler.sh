#!/bin/bash
# Every stressor of stress-ng's class scheduler, one after the other.
#: timeout 900
#: mem 2G
. "$(dirname "$0")/../lib.sh"
begin
run_class scheduler
finish
