"""For scripts/check-dashboard.sh: reads a dashboard into the classes of Grafana's schema and writes
it again. What is gone or changed then, Grafana does not know."""

import json
import sys

from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models import dashboard


def differences(ours, theirs, path=""):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in theirs:
                yield from differences(value, theirs[key], f"{path}/{key}")
            else:
                yield f"{path}/{key} is not in the schema"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, (mine, other) in enumerate(zip(ours, theirs)):
            yield from differences(mine, other, f"{path}/{at}")
    elif ours != theirs:
        yield f"{path} is {ours!r}, and {theirs!r} by the schema"


with open(sys.argv[1], encoding="utf-8") as file:
    ours = json.load(file)
plugins.register_default_plugins()
known = dashboard.Dashboard.from_json(ours)
theirs = json.loads(json.dumps(known, cls=encoder.JSONEncoder))
faults = list(differences(ours, theirs))
for fault in faults:
    print(fault, file=sys.stderr)
if faults:
    sys.exit(1)
print(f"PASS  dashboard: {len(theirs['panels'])} panels, no field that Grafana's schema does not know")
