#!/bin/bash
# Every stressor of stress-ng's class cpu, but for hotplug, which has its own case.
#: timeout 900
#: mem 2G
. "$(dirname "$0")/../lib.sh"
begin
run_class cpu -x cpu-online
finish
