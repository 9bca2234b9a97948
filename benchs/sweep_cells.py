"""Random cells of bench_flat_sweep.py: which sizes, types and data."""

import math
import random

from flat_data import REAL, SYNTHETIC

#: {field: (least, most)}, drawn so that every power of two is as likely.
RANGES = {"n": (1024, 1 << 22), "d": (1, 1536), "q": (1, 1 << 16),
          "k": (1, 2048)}
METRICS = ("L2", "IP", "cosine")
DTYPES = ("float32", "float16", "bfloat16")
DATA = (*SYNTHETIC, *REAL)

#: Bounds of a cell: bytes of its vectors as float32, places of its result,
#: pairs, and operations (2 q n d). FAISS takes about 0.1 s for the last two.
MOST_BYTES = 1 << 31
MOST_PLACES = 1 << 24
MOST_PAIRS = 12e9
MOST_OPERATIONS = 3e12


def _size(rng, least, most):
    """A whole number from least to most: of three, one is any, one a power of
    two and one beside a power of two."""
    value = math.exp(rng.uniform(math.log(least), math.log(most + 1)))
    kind = rng.randrange(3)
    if kind:
        value = 2 ** round(math.log2(value))
    if kind == 2:
        value += rng.choice((-1, 1))
    return min(most, max(least, int(value)))


def fits(cell):
    """Whether a cell keeps to the bounds."""
    n, d, q, k = (cell[name] for name in ("n", "d", "q", "k"))
    return (4 * n * d <= MOST_BYTES and q * k <= MOST_PLACES
            and q * n <= MOST_PAIRS and 2 * q * n * d <= MOST_OPERATIONS)


def _draw(rng):
    data = rng.choice(DATA)
    ranges = dict(RANGES)
    if data in REAL:
        d, most_n, most_q = REAL[data]
        ranges |= {"d": (d, d), "n": (RANGES["n"][0], most_n), "q": (1, most_q)}
    cell = {name: _size(rng, *ranges[name]) for name in ("n", "d", "q", "k")}
    cell["metric"] = rng.choice(METRICS)
    # As many of 32 bits as of 16.
    cell["dtype"] = rng.choice(DTYPES[:1] + DTYPES)
    if cell["metric"] == "cosine" and cell["dtype"] == "bfloat16":
        cell["dtype"] = "float16"  # no call takes bfloat16 vectors
    cell["data"] = data
    return cell


def random_cells(count, seed):
    """`count` cells within the bounds, the same for the same seed. Each is a
    dict of n, d, q, k, metric, dtype, data and the seed of its vectors."""
    rng = random.Random(seed)
    cells = []
    while len(cells) < count:
        cell = _draw(rng)
        if fits(cell):
            cells.append(cell | {"data_seed": rng.getrandbits(31)})
    return cells
