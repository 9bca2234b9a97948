"""Table 5 of Yu et al. 2015 from a result of bench_flat_cpu.py, as Markdown."""

OURS = "faiss_bits"
SIZE = 8192
DIMENSIONS = (16, 64, 256, 512, 1024)  # the paper has no 512


def _rows(data):
    """{(d, k): {method: row}} of the table's cells."""
    cells = {}
    for row in data["rows"]:
        if (row["n"], row["q"], row["metric"], row["dtype"]) == (
                SIZE, SIZE, "L2", "float32") and row["ms"] \
                and row["d"] in DIMENSIONS and not row.get("forced"):
            cells.setdefault((row["d"], row["k"]), {})[row["method"]] = row
    return cells


def _ms(value):
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def table(data):
    """The table, or an empty string where no cell has both methods.

    As in the paper, our heap is the time above that of k = 1, since nothing
    can be timed inside the loops, and "-" where k = 1 was not measured.
    """
    cells = _rows(data)
    faiss = sorted({name for methods in cells.values() for name in methods
                    if name.startswith("faiss_cpu_")})
    lines = []
    for (d, k), methods in sorted(cells.items()):
        if k == 1 or not {OURS, "gemm_heap"} <= methods.keys():
            continue
        gemm, ours = methods["gemm_heap"], methods[OURS]
        least = cells.get((d, 1), {}).get(OURS)
        rest, heap = "-", "-"
        if least:
            rest = _ms(min(least["ms"], ours["ms"]))
            heap = _ms(max(0.0, ours["ms"] - least["ms"]))
        parts = [_ms(gemm[name]) for name in
                 ("collect_ms", "gemm_ms", "norms_ms", "heap_ms")]
        others = [_ms(methods[name]["ms"]) if name in methods else "-"
                  for name in faiss]
        lines.append(
            f"| {d} | {k} | {' + '.join(parts[:3])} | {parts[3]} "
            f"| **{_ms(gemm['ms'])}** | {rest} | {heap} "
            f"| **{_ms(ours['ms'])}** | {ours['variant']} "
            + "".join(f"| {text} " for text in others) + "|")
    if not lines:
        return ""
    meta = data["meta"]
    head = ("| d | k | Algorithm 2.1: collect + GEMM + norms | heap | total "
            "| faiss_bits, k = 1 | heap | total | variant "
            + "".join(f"| {name} " for name in faiss) + "|")
    return "\n".join([
        f"Table 5 of Yu et al. 2015 again, in milliseconds: m = n = {SIZE}, "
        f"float32, {meta['cpu']}, {meta['threads']} threads, {meta['date']}, "
        f"commit {meta['commit'][:10]}.",
        "", head, "|---" * (9 + len(faiss)) + "|", *lines, ""])
