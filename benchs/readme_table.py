#!/usr/bin/env python3
"""Writes the tables of README.md from measured results.

    benchs/readme_table.py benchs/results/h200 [--readme README.md]

Reads the results of that folder, and replaces what stands between the marks:
`first:`, the first screen, from flat_rivals.json and dropin_searches.json, and
`speed:`, from select.json and flat.json, and flat_few_vectors.json, kmeans.json and
the file of inverted lists (LISTS) where they are there. No figure of these parts is typed by hand.
"""

import argparse
from pathlib import Path

from program import end_with
import result_file

#: Vectors of the table of flat search.
MANY = 1 << 20
#: The last run of inverted lists beside FAISS, and what is shown of it: lists,
#: and probes of a query, an ordinary case and a slow one.
LISTS = "ivf.json"
LIST_CELLS = ((1024, 32), (4096, 8))
LIST_INDEXES = {"ivf_flat": "IVFFlat", "ivf_sq8": "SQ8", "ivf_pq32": "PQ32"}
#: Of the first screen: methods of flat_rivals.json with a column of their own,
#: and those of which the fastest is named.
COLUMNS = {"faiss_flat": "FAISS {faiss}", "cuvs": "cuVS {cuvs}"}
OTHERS = {
    "torch_fp32": "torch",
    "torch_tf32": "torch TF32",
    "flashlib_fp32": "FlashLib",
    "flashlib_bf16": "FlashLib bf16",
}


def load(path):
    """meta, and rows by (method, everything else that identifies a cell)."""
    data = result_file.load(path)
    rows = {}
    for row in data["rows"]:
        # The tables are of uniform data; a row without a time says why.
        if row.get("forced") or "data" in row or row["ms"] is None:
            continue
        cell = result_file.cell_of(row)[1:]
        rows.setdefault(cell, {})[row["method"]] = row
    return data["meta"], rows


def power(number):
    """1048576 as 2^20; numbers below 4096 as they are."""
    exponent = number.bit_length() - 1
    return f"2^{exponent}" if number >= 4096 and number == 1 << exponent else str(number)


def select_lines(rows):
    """Markdown rows: our time, share of the memory limit, best rival, and
    FAISS."""
    yield (
        "| rows x cols | k | order | faiss_bits | of the memory's speed "
        "| best rival | ratio | FAISS | ratio |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    wanted = [
        (1, 1 << 27, 32, "random"),
        (64, 1 << 24, 10, "random"),
        (64, 1 << 24, 2048, "random"),
        (1024, 1 << 20, 10, "random"),
        (1024, 1 << 20, 128, "random"),
        (1024, 1 << 20, 2048, "random"),
        (16384, 1 << 15, 10, "random"),
        (16384, 1 << 15, 2048, "random"),
        (1024, 1 << 20, 16384, "random"),
        (1024, 1 << 20, 262144, "random"),
        (1, 1 << 27, 1 << 24, "random"),
        (1024, 1 << 20, 10, "descending"),
        (1024, 1 << 20, 2048, "descending"),
    ]
    for n, cols, k, order in wanted:
        cell = {"rows": n, "cols": cols, "k": k, "order": order}
        for key, methods in rows.items():
            found = dict(key)
            if found["dtype"] != "float32" or any(
                found[name] != value for name, value in cell.items()
            ):
                continue
            ours = methods["faiss_bits"]
            rivals = {
                name: m["ms"] for name, m in methods.items() if name != "faiss_bits"
            }
            if not rivals:
                continue
            name = min(rivals, key=rivals.get)
            faiss = [ms for name, ms in rivals.items() if name.startswith("faiss")]
            yield (
                f"| {n} x {power(cols)} | {power(k)} | {order} "
                f"| {ours['ms']:.3g} ms | {ours['frac_read']:.2f} "
                f"| {name}, {rivals[name]:.3g} ms | {rivals[name] / ours['ms']:.1f} "
                + (
                    f"| {min(faiss):.3g} ms | {min(faiss) / ours['ms']:.1f} |"
                    if faiss
                    else "| - | - |"
                )
            )


def flat_lines(rows):
    """Markdown rows: one row for d and q, a column for each k."""
    ks = (10, 100, 2000)
    yield "| d | queries | " + " | ".join(
        f"k = {k}: faiss_bits, FAISS, ratio" for k in ks
    ) + " |"
    yield "|---|---|" + "---|" * len(ks)
    cells = {
        tuple(dict(key)[name] for name in ("d", "q", "k")): methods
        for key, methods in rows.items()
        if dict(key)["metric"] == "L2" and dict(key)["dtype"] == "float32"
        and dict(key)["n"] == MANY
    }
    for d in (32, 128, 768):
        for q in (1, 16, 1024, 10240):
            columns = []
            for k in ks:
                methods = cells.get((d, q, k), {})
                if {"faiss_bits", "faiss_flat"} <= methods.keys():
                    ours = methods["faiss_bits"]["ms"]
                    theirs = methods["faiss_flat"]["ms"]
                    columns.append(
                        f"{ours:.3g} ms, {theirs:.3g} ms, **{theirs / ours:.1f}**"
                    )
                else:
                    columns.append("-")
            yield f"| {d} | {q} | " + " | ".join(columns) + " |"


def faster(theirs, ours):
    return f"{theirs:.3g} ms, **{theirs / ours:.1f}**"


def first_section(folder):
    """The table of the first screen."""
    meta, rows = load(folder / "flat_rivals.json")
    dropin = result_file.load(folder / "dropin_searches.json")
    versions = {name: str(value).split("+")[0] for name, value in meta.items()}
    heads = [text.format_map(versions) for text in COLUMNS.values()]
    heads += [
        f"the fastest of torch {versions['torch']} and FlashLib {versions['flashlib']}",
        f"FAISS {dropin['meta']['faiss']} on NumPy arrays, alone and with our drop-in library",
    ]
    yield (f"Exact search of {MANY:,} vectors, d = 128, by L2 in float32 on an "
           f"{meta['gpu']}: times of a call, and in bold how many times as long "
           "as ours.")
    yield ""
    yield "| queries | k | faiss_bits | " + " | ".join(heads) + " |"
    yield "|---|---|---|" + "---|" * len(heads)
    shape = {"metric": "L2", "dtype": "float32", "n": MANY, "d": 128}
    cells = {
        (dict(key)["q"], dict(key)["k"]): {name: r["ms"] for name, r in ms.items()}
        for key, ms in rows.items()
        if shape.items() <= dict(key).items()
    }
    with_dropin = {
        (row["q"], row["k"]): f"{row['ms_stock']:.3g} ms, {row['ms_dropin']:.3g} "
        f"ms, **{row['ms_stock'] / row['ms_dropin']:.1f}**"
        for row in dropin["rows"]
        if (row["index"], row["n"], row["d"]) == ("flat_l2", MANY, 128)
    }
    for q in (1, 1024, 10240):
        for k in (10, 100):
            ms = cells[q, k]
            ours = ms["faiss_bits"]
            best = min(OTHERS, key=ms.get)
            columns = [faster(ms[name], ours) for name in COLUMNS]
            columns.append(f"{OTHERS[best]}, {faster(ms[best], ours)}")
            columns.append(with_dropin[q, k])
            yield f"| {q:,} | {k} | {ours:.3g} ms | " + " | ".join(columns) + " |"
    yield ""
    yield (f"Uniform vectors on the device, in one run ({when(meta)}); the last "
           f"column is of another run, of the official wheel and whole calls, "
           f"copies included ({when(dropin['meta'])}). TF32 and bf16 round, so their "
           "neighbours need not be the nearest. [More figures](#how-fast), [slow cases](#limits).")


def nearest_lines(rows):
    """Markdown rows: many queries for the nearest of few vectors."""
    cells = {}
    for key, methods in rows.items():
        cell = dict(key)
        if ((cell["metric"], cell["dtype"], cell["k"]) == ("L2", "float32", 1)
                and cell["n"] < MANY
                and {"faiss_bits", "faiss_flat"} <= methods.keys()):
            cells[cell["q"], cell["n"], cell["d"]] = methods
    ds = sorted({d for _, _, d in cells})
    yield "| queries | n | " + " | ".join(
        f"d = {d}: faiss_bits, FAISS, ratio" for d in ds) + " |"
    yield "|---|---|" + "---|" * len(ds)
    for q, n in sorted({(q, n) for q, n, _ in cells}):
        columns = []
        for d in ds:
            methods = cells.get((q, n, d))
            if methods is None:
                columns.append("-")
                continue
            ours, theirs = (methods[name]["ms"]
                            for name in ("faiss_bits", "faiss_flat"))
            columns.append(
                f"{ours:.3g} ms, {theirs:.3g} ms, **{theirs / ours:.1f}**")
        yield f"| {q:,} | {n:,} | " + " | ".join(columns) + " |"


def kmeans_lines(data):
    """Markdown rows of kmeans.json."""
    yield "| vectors on the | data | faiss_bits | FAISS | ratio |"
    yield "|---|---|---|---|---|"
    cells = {}
    for row in data["rows"]:
        cells.setdefault((row["input"], row["data"]), {})[row["method"]] = row["ms"]
    for (place, kind), ms in cells.items():
        if {"faiss_bits", "faiss"} <= ms.keys():
            where = "host" if place == "numpy" else "GPU (torch)"
            yield (f"| {where} | {kind} | {ms['faiss_bits']:.0f} ms | "
                   f"{ms['faiss']:.0f} ms | **{ms['faiss'] / ms['faiss_bits']:.0f}** |")


def rival_names(rows):
    """All methods but ours, as text."""
    names = {name for methods in rows.values() for name in methods}
    return ", ".join(sorted(names - {"faiss_bits"}))


def when(meta):
    return f"{meta['date']}, commit {meta['commit'][:10]}"


def nearest_section(path):
    if not path.exists():
        return []
    meta, flat = load(path)
    return [f"The one nearest of few vectors (k = 1), as in k-means and coarse "
            f"quantizers ({when(meta)}):", "", *nearest_lines(flat), ""]


def kmeans_section(path):
    if not path.exists():
        return []
    data = result_file.load(path)
    row = data["rows"][0]
    return [f"`faiss_bits.Kmeans` and `faiss.Kmeans` with `gpu=True`: "
            f"{row['n']:,} x {row['d']} into {row['k']:,}, {row['niter']} "
            f"iterations ({when(data['meta'])}):", "", *kmeans_lines(data), ""]


def lists_lines(rows):
    """Markdown rows of LISTS."""
    yield "| lists | probed | queries | " + " | ".join(
        f"{name}: faiss_bits, FAISS, ratio" for name in LIST_INDEXES.values()) + " |"
    yield "|---|---|---|" + "---|" * len(LIST_INDEXES)
    cells = {}
    for row in rows:
        if row["k"] == 10:
            key = row["index"], row["nlist"], row["nprobe"], row["q"]
            cells.setdefault(key, {})[row["method"]] = row["ms"]
    for nlist, nprobe in LIST_CELLS:
        for q in sorted({key[3] for key in cells}):
            columns = []
            for index in LIST_INDEXES:
                ms = cells.get((index, nlist, nprobe, q), {})
                columns.append(
                    f"{ms['faiss_bits']:.3g} ms, {faster(ms['faiss'], ms['faiss_bits'])}"
                    if {"faiss_bits", "faiss"} <= ms.keys() else "-")
            yield f"| {nlist:,} | {nprobe} | {q:,} | " + " | ".join(columns) + " |"


def lists_section(path):
    if not path.exists():
        return []
    data = result_file.load(path)
    row = data["rows"][0]
    return [f"`GpuIndexBitsIVFFlat`, `GpuIndexBitsIVFScalarQuantizer` (8 bits) and "
            f"`GpuIndexBitsIVFPQ` (32 codes of 8 bits) beside FAISS's own: "
            f"{row['n']:,} x {row['d']}, L2, k = 10 ({when(data['meta'])}):", "",
            *lists_lines(data["rows"]), ""]


def section(folder):
    select_meta, select = load(folder / "select.json")
    flat_meta, flat = load(folder / "flat.json")
    lines = [
        f"{flat_meta['gpu']}, CUDA {flat_meta['cuda']}, against FAISS "
        f"{flat_meta['faiss']} in the same run, data on the device.",
        "",
        f"`GpuIndexBitsFlatL2::search` and `GpuIndexFlatL2::search`, float32, "
        f"n = {MANY:,} ({when(flat_meta)}):",
        "",
        *flat_lines(flat),
        "",
        *nearest_section(folder / "flat_few_vectors.json"),
        *lists_section(folder / LISTS),
        *kmeans_section(folder / "kmeans.json"),
        f"k-selection of float rows (`runSelect`; the best of "
        f"{rival_names(select)} in the same run; FAISS is the faster of "
        f"`runBlockSelect` and `runWarpSelect`; memory read at "
        f"{select_meta['read_bw_gbps']:.0f} GB/s; {when(select_meta)}):",
        "",
        *select_lines(select),
    ]
    return "\n".join(lines)


def replaced(text, name, content):
    """The text with that content between its two marks."""
    head, rest = text.split(f"<!-- {name}: begin", 1)
    mark, rest = rest.split("\n", 1)
    end = f"<!-- {name}: end -->"
    tail = rest.split(end, 1)[1]
    return (
        f"{head}<!-- {name}: begin{mark}\n\n{content}\n\n{end}{tail}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readme", type=Path, default=Path("README.md"))
    args = parser.parse_args()
    text = args.readme.read_text()
    text = replaced(text, "first", "\n".join(first_section(args.folder)))
    text = replaced(text, "speed", section(args.folder))
    args.readme.write_text(text)


if __name__ == "__main__":
    end_with(main)
