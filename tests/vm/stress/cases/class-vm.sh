#!/bin/bash
# Every stressor of stress-ng's class vm.
#: timeout 900
#: mem 2G
. "$(dirname "$0")/../lib.sh"
begin
run_class vm
finish
