"""Exact search over many machines, on Dask.

    from dask.distributed import Client
    from faiss_bits.distributed import DistributedFlat, ShardSpec

    client = Client("scheduler:8786")
    specs = [ShardSpec(f"/data/part{i}.npy") for i in range(32)]
    with DistributedFlat(client, specs) as index:
        D, I = index.search(xq, 10)

Workers read their shards themselves, hold them in an index of ours on their GPU or
CPU, and merge slices of the results between them. docs/distributed.md has how to
start a cluster, what is promised, and what happens when a worker is lost.

It needs Dask: pip install "dask[distributed]" (Debian: python3-distributed).
"""

# What any name of faiss_bits does first: a look at FAISS.
from .. import compiled as _compiled  # noqa: F401

try:
    from distributed import Client as _Client  # noqa: F401
except ImportError as error:
    raise ImportError(
        "faiss_bits.distributed needs Dask: pip install 'dask[distributed]' "
        "(Debian: apt-get install python3-distributed)"
    ) from error

from .calibration import calibrate
from .clustering import Clusters, kmeans
from .errors import JobAbortedError, SearchTimeoutError, WorkerLostError
from .flat import DistributedFlat
from .graph import knn_graph
from .ivf import DistributedIVF
from .planning import Plan, Rates, Step, plan
from .specs import ShardSpec

__all__ = [
    "Clusters",
    "DistributedFlat",
    "DistributedIVF",
    "JobAbortedError",
    "Plan",
    "Rates",
    "SearchTimeoutError",
    "ShardSpec",
    "Step",
    "WorkerLostError",
    "calibrate",
    "kmeans",
    "knn_graph",
    "plan",
]
