"""Prints what a page requested, by Chromium's own record (--log-net-log).

    page-requests.py NETLOG

Exit status 1 when there was anything. The browser's own requests have no page as
their initiator and do not count; neither do files, which is what the page is.
"""

import json
import sys


def requests(netlog):
    kinds = netlog["constants"]["logEventTypes"]
    start = kinds["URL_REQUEST_START_JOB"]
    for event in netlog["events"]:
        params = event.get("params") or {}
        url = params.get("url", "")
        local = url.startswith(("file:", "data:", "blob:", "about:"))
        by_page = params.get("initiator") != "not an origin"
        if event["type"] == start and url and by_page and not local:
            yield url


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = sorted(set(requests(json.load(file))))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
