"""Algorithm 2.1 by the cost model of Yu et al. 2015, section 2.6."""

import math

#: The paper's: the share of a heap's worst case that is expected.
EPSILON = 0.5
#: Blocks of the Goto algorithm, for packing and for partial sums: the paper's.
N_C, D_C = 4096, 256


def gemm_heap_seconds(meta, m, n, d, k):
    """Equations (3) and (5) with the constants of `meta`, which are those of
    one thread: threads divide operations and random accesses. They share the
    memory, whose time for a value is taken from the measured bandwidth."""
    operations = meta["model_operations_per_second"] * meta["threads"]
    access = meta["model_seconds_per_access"] / meta["threads"]
    value = 4e-9 / meta["read_bw_gbps"]
    adjustments = EPSILON * m * k * math.log2(max(2, k))
    arithmetic = ((2 * d + 3) * m * n + 24 * (m * n + adjustments)) / operations
    packing = n * d + 2 * n + (d * m + 2 * m) * math.ceil(n / N_C)
    partial_sums = (math.ceil(d / D_C) - 1) * m * n
    gemm_only = d * m + d * n + 2 * m * n
    return (arithmetic + value * (packing + partial_sums + gemm_only)
            + 2 * access * adjustments)
