"""What a file has to reach: the lines of benchs/select_targets.json, or of
benchs/ivf_targets.json.

    floors    share of the read bandwidth, float32 keys in random order
    orders    time of float32 keys in another order over that in random order
    speedups  time of the best rival over ours; the rivals must be there
    ahead_of_every_rival   the same for every cell that has a rival
    ivf       speed-ups over rivals of inverted lists: index, nlist, nprobe, q,
              ks, and data if not uniform
"""

from result_file import cell_of

OURS = "faiss_bits"


def parse_number(text):
    """64, or 2^20 for 1048576."""
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


def parse_shape(text):
    """(rows, cols) of ROWSxCOLS."""
    rows, cols = text.split("x")
    return parse_number(rows), parse_number(cols)


def by_cell(rows):
    """{(rows, cols, k, dtype, order): {method: row}}; the last row counts.
    Rows of a forced algorithm are no part of the race."""
    cells = {}
    for row in rows:
        if not row.get("forced") and row["ms"]:
            key = tuple(value for _, value in cell_of(row)[1:])
            cells.setdefault(key, {})[row["method"]] = row
    return cells


def best_rival(methods):
    """(name, ms) of the fastest method but ours, or (None, None)."""
    rivals = {n: row["ms"] for n, row in methods.items() if n != OURS}
    name = min(rivals, key=rivals.get, default=None)
    return name, rivals.get(name)


def _cells(target):
    for shape in target["shapes"]:
        for k in target["ks"]:
            yield (*parse_shape(shape), k)


def _floors(cells, target):
    for cell in _cells(target):
        row = cells.get((*cell, "float32", "random"), {}).get(OURS)
        value = row and row["frac_read"]
        yield ("frac_read", (*cell, "random"), value,
               bool(row) and value >= target["frac_read"], target["frac_read"])


def _orders(cells, target):
    for cell in _cells(target):
        easy = cells.get((*cell, "float32", "random"), {}).get(OURS)
        for order in target["orders"]:
            row = cells.get((*cell, "float32", order), {}).get(OURS)
            value = row["ms"] / easy["ms"] if row and easy else None
            yield ("over random", (*cell, order), value,
                   value is not None and value <= target["ratio"],
                   target["ratio"])


def _speedups(cells, target):
    for cell in _cells(target):
        methods = cells.get((*cell, "float32", "random"), {})
        name, best = best_rival(methods)
        ours = methods.get(OURS)
        there = ours and all(r in methods for r in target["rivals"])
        value = best / ours["ms"] if there else None
        lacking = [r for r in target["rivals"] if r not in methods]
        yield (f"over {name}" if there else f"lacks {', '.join(lacking) or OURS}",
               (*cell, "random"), value,
               value is not None and value >= target["speedup"],
               target["speedup"])


def _ahead(cells, least):
    for (rows, cols, k, dtype, order), methods in cells.items():
        name, best = best_rival(methods)
        if name is None:
            continue
        ours = methods.get(OURS)
        value = best / ours["ms"] if ours else None
        yield (f"ahead of {name}", (rows, cols, k, f"{dtype} {order}"), value,
               value is not None and value >= least, least)


def _ivf(rows, target):
    methods = {}
    for row in rows:
        if row["bench"] == "ivf" and row["ms"] and all(
                row.get(field) == target[field]
                for field in ("index", "nlist", "nprobe", "q")) and (
                row["data"] == target.get("data", "uniform")):
            methods.setdefault(row["k"], {})[row["method"]] = row
    for k in target["ks"]:
        name, best = best_rival(methods.get(k, {}))
        ours = methods.get(k, {}).get(OURS)
        value = best / ours["ms"] if ours and best else None
        cell = (target["q"], target["nlist"], k,
                f"{target['index']} nprobe={target['nprobe']}")
        yield (f"over {name or 'a rival'}", cell, value,
               value is not None and value >= target["speedup"],
               target["speedup"])


def check(rows, targets):
    """[(what, cell, value or None, reached, target)] of every line."""
    results = []
    for target in targets.get("ivf", ()):
        results += _ivf(rows, target)
    if set(targets) == {"ivf"}:
        return results
    cells = by_cell(rows)
    for target in targets.get("floors", ()):
        results += _floors(cells, target)
    for target in targets.get("orders", ()):
        results += _orders(cells, target)
    for target in targets.get("speedups", ()):
        results += _speedups(cells, target)
    if "ahead_of_every_rival" in targets:
        results += _ahead(cells, targets["ahead_of_every_rival"])
    return results


def report(results, quiet=False):
    """Prints the lines; returns how many were missed."""
    missed = 0
    for what, (rows, cols, k, order), value, reached, target in results:
        missed += not reached
        if reached and quiet:
            continue
        text = "missing" if value is None else f"{value:.3f}"
        print(f"{'ok  ' if reached else 'MISS'} {rows:6d} x {cols:<9d} "
              f"k={k:<8d} {order:20s} {what:28s} {text:>8s} of {target:g}")
    print(f"{len(results)} targets, {missed} missed")
    return missed
