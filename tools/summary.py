#!/usr/bin/env python3
"""Sums up JUnit reports: summary.py NAME=FILE...

Prints every skipped test by name under its reason, every failed one, and a
table of counts. The cases of one parametrised test share a line when they are
skipped, with their number. Exit code 1 if a test failed, a report is missing, or a
report holds no test at all.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path


def outcome(case):
    """("passed" | "skipped" | "failed", reason) of one <testcase>."""
    for kind in ("failure", "error"):
        if case.find(kind) is not None:
            return "failed", case.find(kind).get("message") or ""
    skip = case.find("skipped")
    if skip is not None:
        return "skipped", skip.get("message") or ""
    # ctest marks what it could not start by its status alone.
    if case.get("status") in ("fail", "disabled", "notrun"):
        return "failed", case.get("status")
    return "passed", ""


def read_report(path):
    """[(name, outcome, reason)] of the cases in a JUnit file."""
    cases = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        group = case.get("classname")
        if group and group != name and "." not in name:
            name = f"{group}.{name}"
        cases.append((name, *outcome(case)))
    return cases


def without_parameters(name):
    """a.b[1-2] (pytest) as a.b, Some/A.B/3 (GoogleTest) as Some/A.B."""
    return re.sub(r"^([^/]+/[^/]+)/.*", r"\1", name.split("[", 1)[0])


def grouped(names):
    """["a.b", "c.d (3 cases)"]: cases that differ in parameters are counted."""
    counts = Counter(map(without_parameters, names))
    return [
        name if count == 1 else f"{name} ({count} cases)"
        for name, count in sorted(counts.items())
    ]


def main(arguments):
    table = [f"{'tests':14} {'passed':>8} {'skipped':>8} {'failed':>8}"]
    skipped = defaultdict(list)
    failed = []
    for argument in arguments:
        label, path = argument.split("=", 1)
        cases = read_report(path) if Path(path).is_file() else []
        if not cases:
            failed.append(f"{label}: no test ran ({path})")
        counts = Counter(result for _, result, _ in cases)
        table.append(
            f"{label:14} {counts['passed']:8} {counts['skipped']:8} "
            f"{counts['failed']:8}"
        )
        for name, result, reason in cases:
            if result == "skipped":
                skipped[f"{label}: {reason or 'see its output'}"].append(name)
            elif result == "failed":
                failed.append(f"{label}: {name}")
    for reason, names in skipped.items():
        print(f"\nskipped, {reason} ({len(names)}):")
        print("".join(f"  {line}\n" for line in grouped(names)), end="")
    if failed:
        print(f"\nFAILED ({len(failed)}):")
        print("".join(f"  {name}\n" for name in failed), end="")
    print("\n" + "\n".join(table))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
