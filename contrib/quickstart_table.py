"""The rows of quickstart.py as text."""

__all__ = ["notes", "table"]


def _share(value):
    return "-" if value is None else f"{100 * value:.2f} %"


def _span(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.2f} ms"


def _fewer_mark(row):
    return "*" if row["faiss_q"] < row["q"] else ""


_COLUMNS = (
    ("data", lambda r: r["data"]),
    ("metric", lambda r: r["metric"]),
    ("backend", lambda r: r["backend"]),
    ("n", lambda r: f"{r['n']:,}"),
    ("d", lambda r: str(r["d"])),
    ("q", lambda r: f"{r['q']:,}"),
    ("k", lambda r: str(r["k"])),
    ("time", lambda r: _span(r["seconds"])),
    ("q/s", lambda r: f"{r['queries_per_second']:,.0f}"),
    ("recall", lambda r: "-" if r["recall"] is None else f"{r['recall']:.4f}"),
    ("same ids", lambda r: _share(r["same_ids"])),
    ("or tied", lambda r: _share(r["same_or_tied"])),
    ("FAISS time", lambda r: _span(r["faiss_seconds"]) + _fewer_mark(r)),
    ("FAISS q/s", lambda r: f"{r['faiss_queries_per_second']:,.0f}"),
    ("speed-up", lambda r: f"{r['speed_up']:.2f}x"),
)


def table(rows):
    """The rows as text, aligned; words to the left, numbers to the right."""
    cells = [[name for name, _ in _COLUMNS]]
    cells += [[text(row) for _, text in _COLUMNS] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < 3 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in cells
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def notes(rows, cpu_slice):
    """Lines of what the table's columns mean; on the CPU queries were searched
    so many at a time."""
    fewer = [row["faiss_q"] for row in rows if row["faiss_q"] < row["q"]]
    if fewer:
        yield (
            f"* for the first {fewer[0]:,} queries only, to save time; so are "
            "the shares of same ids. --all-rival asks for all."
        )
    if rows[0]["backend"] == "cpu":
        yield (
            f"No GPU in use: the times of faiss_bits are those of its CPU index "
            f"{rows[0]['index']}, FAISS's\nthose of {rows[0]['faiss_index']} of "
            f"FAISS {rows[0]['faiss']}, both with {rows[0]['threads']} threads, "
            f"the queries in slices of {cpu_slice}."
        )
    else:
        yield (
            "Times are those of search() with arrays on the host, copies "
            f"included; {rows[0]['faiss_index']} of FAISS {rows[0]['faiss']}."
        )
    yield (
        "recall: of the true neighbours that came with the data ('-': none "
        "did). same ids: as FAISS's\nindex, place by place. or tied: or a "
        "vector equally near to within float32 rounding."
    )
