#!/bin/bash
# Every stressor of stress-ng's class filesystem.
#: timeout 900
#: mem 2G
. "$(dirname "$0")/../lib.sh"
begin
run_class filesystem
finish
