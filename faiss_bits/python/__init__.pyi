# Names and types for editors and type checkers; what each call does is in its
# help(). tests/python/test_stubs.py holds this file against the package. The
# classes of the GPU part are there only where it was built.

import os
from collections.abc import Sequence
from typing import Any, overload

import faiss

__version__: str

# A numpy array or a torch tensor. Results are of the kind of the arguments.
_Array = Any
# faiss.METRIC_*; of knn() and range_search() also "cosine" and "jaccard".
_Metric = Any
# faiss.StandardGpuResources, or the getResources() of an index.
_Resources = Any
_Path = str | os.PathLike[str]
_Words = Sequence[str | bytes]

# ---- without an index --------------------------------------------------------

def knn(
    xq: _Array,
    xb: _Array,
    k: int,
    D: _Array | None = None,
    I: _Array | None = None,
    metric: _Metric = ...,
    device: int = -1,
    vectorNorms: _Array | None = None,
    res: _Resources | None = None,
    metric_arg: float = 0.0,
    choice: FusedChoice | None = None,
    backend: str = "auto",
    search_mode: str = "certified",
) -> tuple[_Array, _Array]: ...
def range_search(
    xq: _Array,
    xb: _Array,
    radius: float,
    metric: _Metric = ...,
    metric_arg: float = 0.0,
    device: int = -1,
    res: _Resources | None = None,
    max_results: int | None = None,
    backend: str = "auto",
) -> tuple[_Array, _Array, _Array]: ...
def radius_neighbors_graph(
    X: _Array,
    radius: float,
    xb: _Array | None = None,
    mode: str = "connectivity",
    include_self: bool = True,
    **options: Any,
) -> Any: ...  # scipy.sparse.csr_matrix
def knn_subset(
    x: _Array,
    query_ids: _Array | None,
    reference_ids: _Array | None,
    k: int,
    metric: _Metric = ...,
    metric_arg: float = 0.0,
    D: _Array | None = None,
    I: _Array | None = None,
    choice: FusedChoice | None = None,
    search_mode: str = "certified",
) -> tuple[_Array, _Array]: ...
def select_k(
    keys: _Array,
    k: int,
    largest: bool = False,
    ids: _Array | None = None,
    res: _Resources | None = None,
    algorithm: str = "auto",
    sorted: bool = True,
) -> tuple[_Array, _Array]: ...

# ---- what would run ----------------------------------------------------------

def backend(metric: _Metric = ..., dtype: str = "float32") -> str: ...
def get_num_gpus() -> int: ...
def cpu_plan(
    nq: int,
    nb: int,
    d: int,
    k: int,
    metric: _Metric = ...,
    metric_arg: float = 0.0,
    dtype: str = "float32",
    choice: FusedChoice | None = None,
) -> str: ...
def select_plan(
    rows: int,
    cols: int,
    k: int,
    dtype: str = "float32",
    largest: bool = False,
    sorted: bool = True,
    algorithm: str = "auto",
    device: int | str = -1,
    res: _Resources | None = None,
    on_device: bool = False,
) -> Any: ...  # GpuSelectPlan

# ---- indexes of indexes ------------------------------------------------------

def best_flat_index(d: int, metric: _Metric = ...) -> IndexFusedFlat: ...
def index_to_fused(index: faiss.Index) -> faiss.Index: ...
def index_cpu_to_gpu(
    res: _Resources,
    device: int,
    index: faiss.Index,
    options: Any | None = None,
    useBFloat16: bool = False,
) -> Any: ...
def index_cpu_to_gpu_multiple(
    resources: Sequence[_Resources] | None,
    devices: Sequence[int],
    index: faiss.Index,
    co: Any | None = None,
    config: GpuIndexBitsManyConfig | None = None,
) -> Any: ...
def index_cpu_to_all_gpus(
    index: faiss.Index,
    co: Any | None = None,
    ngpu: int = -1,
    config: GpuIndexBitsManyConfig | None = None,
) -> Any: ...

# ---- on the CPU --------------------------------------------------------------

class FusedChoice:
    variant: str
    queryBlock: int
    vectorBlock: int
    depthBlock: int
    target: str
    arithmetic: str
    def __init__(
        self,
        variant: str = "auto",
        queryBlock: int = 0,
        vectorBlock: int = 0,
        depthBlock: int = 0,
        target: str = "",
        arithmetic: str = "auto",
    ) -> None: ...

class IndexFusedFlat(faiss.IndexFlat):
    search_mode: str
    choice: FusedChoice
    @overload
    def __init__(
        self, d: int, metric: _Metric = ..., metricArg: float = ..., /
    ) -> None: ...
    @overload
    def __init__(self, index: faiss.IndexFlat, /) -> None: ...
    def knn_subset(
        self,
        query_ids: _Array | None,
        reference_ids: _Array | None,
        k: int,
        *,
        D: _Array | None = None,
        I: _Array | None = None,
    ) -> tuple[_Array, _Array]: ...
    def plan(self, n: int, k: int) -> str: ...
    def stats(self) -> Any: ...  # certified, repeated, rescored
    def reset_stats(self) -> None: ...

class IndexFusedIVFFlat(faiss.IndexIVFFlat):
    @overload
    def __init__(
        self, quantizer: faiss.Index, d: int, nlist: int, metric: _Metric = ..., /
    ) -> None: ...
    @overload
    def __init__(self, index: faiss.IndexIVFFlat, /) -> None: ...
    def search_preassigned(  # type: ignore[override]
        self,
        x: _Array,
        k: int,
        Iq: _Array,
        Dq: _Array | None = None,
        *,
        store_pairs: bool = False,
        params: Any | None = None,
        D: _Array | None = None,
        I: _Array | None = None,
    ) -> tuple[_Array, _Array]: ...
    def stats(self) -> Any: ...  # certified, repeated, rescored
    def reset_stats(self) -> None: ...

class _MetricSpace:
    def build(self) -> None: ...
    def isBuilt(self) -> bool: ...
    def numDistances(self) -> int: ...
    def resetDistances(self) -> None: ...
    def write(self, fname: _Path) -> None: ...
    def read(self, fname: _Path) -> None: ...

class IndexListOfClusters(_MetricSpace, faiss.Index):
    def __init__(
        self, d: int, metric: _Metric = ..., bucketSize: int = ..., seed: int = ..., /
    ) -> None: ...
    def numClusters(self) -> int: ...

class IndexSSS(_MetricSpace, faiss.Index):
    def __init__(
        self, d: int, metric: _Metric = ..., alpha: float = ..., maxPivots: int = ..., /
    ) -> None: ...
    def numPivots(self) -> int: ...

# ---- on a GPU, or on the CPU where there is none -----------------------------

class Kmeans:
    d: int
    k: int
    gpu: int
    centroids: _Array | None
    obj: _Array | None
    iteration_stats: list[dict[str, Any]] | None
    index: Any | None
    cp: Any
    def __init__(
        self,
        d: int,
        k: int,
        gpu: bool | int | None = None,
        device: int = -1,
        res: _Resources | None = None,
        search_mode: str = "certified",
        most_device_bytes: int = 0,
        **kwargs: Any,
    ) -> None: ...
    def reset(self, k: int | None = None) -> None: ...
    def train(
        self,
        x: _Array,
        weights: _Array | None = None,
        init_centroids: _Array | None = None,
    ) -> float: ...
    def assign(self, x: _Array) -> tuple[_Array, _Array]: ...

class EditDistanceIndex:
    words: list[str | bytes]
    def __init__(self, words: _Words, device: str = "auto") -> None: ...
    @property
    def ntotal(self) -> int: ...
    @property
    def on_gpu(self) -> bool: ...
    def __len__(self) -> int: ...
    def range_search(
        self,
        queries: _Words,
        max_distance: int,
        method: str = "auto",
        on_device: bool = False,
    ) -> tuple[_Array, _Array, _Array]: ...
    def search(
        self, queries: _Words, k: int, method: str = "auto"
    ) -> tuple[_Array, _Array]: ...
    def plan(
        self, query_length: int, max_distance: int, method: str = "auto"
    ) -> str: ...

# ---- on a GPU ----------------------------------------------------------------

class GpuIndexBitsFlatConfig(faiss.GpuIndexFlatConfig):
    useBFloat16: bool
    keepSearchImage: bool
    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, config: faiss.GpuIndexFlatConfig, /) -> None: ...

class _GpuRanges:
    def range_search(
        self,
        x: _Array,
        thresh: float,
        *,
        params: Any | None = None,
        max_results: int | None = None,
    ) -> tuple[_Array, _Array, _Array]: ...

class GpuIndexBitsFlat(_GpuRanges, faiss.GpuIndexFlat):
    search_mode: str
    @overload
    def __init__(
        self,
        res: _Resources,
        d: int,
        metric: _Metric,
        config: faiss.GpuIndexFlatConfig = ...,
        /,
    ) -> None: ...
    @overload
    def __init__(
        self,
        res: _Resources,
        cpu_index: faiss.IndexFlat,
        config: faiss.GpuIndexFlatConfig = ...,
        /,
    ) -> None: ...
    def plan(
        self, nq: int, k: int, params: Any | None = None, on_device: bool = False
    ) -> Any: ...  # GpuSearchPlan
    def stats(self) -> Any: ...  # certified, repeated, rescored
    def reset_stats(self) -> None: ...
    def reserve(self, numVecs: int) -> None: ...
    def truncate(self, numVecs: int) -> None: ...

class _GpuIndexBitsFlatOfMetric(GpuIndexBitsFlat):
    @overload
    def __init__(
        self, res: _Resources, d: int, config: faiss.GpuIndexFlatConfig = ..., /
    ) -> None: ...
    @overload
    def __init__(
        self,
        res: _Resources,
        cpu_index: faiss.IndexFlat,
        config: faiss.GpuIndexFlatConfig = ...,
        /,
    ) -> None: ...

class GpuIndexBitsFlatL2(_GpuIndexBitsFlatOfMetric): ...
class GpuIndexBitsFlatIP(_GpuIndexBitsFlatOfMetric): ...

class _GpuLists(_GpuRanges):
    # (res, d, nlist, ...), (res, quantizer, d, nlist, ...) or (res, cpu_index,
    # config); help() of each class has the rest.
    def __init__(self, *args: Any) -> None: ...
    def update_vectors(self, keys: _Array, x: _Array) -> None: ...
    def remove_ids(self, x: Any) -> int: ...

# FAISS's stubs have not all of its GPU classes.
class GpuIndexBitsIVFFlat(_GpuLists, faiss.GpuIndexIVFFlat): ...  # type: ignore
class GpuIndexBitsIVFPQ(_GpuLists, faiss.GpuIndexIVFPQ): ...  # type: ignore
class GpuIndexBitsIVFScalarQuantizer(
    _GpuLists, faiss.GpuIndexIVFScalarQuantizer  # type: ignore
): ...

class _GpuMetricSpace(_MetricSpace, _GpuRanges):
    query_major: bool

class GpuIndexBitsListOfClusters(_GpuMetricSpace, faiss.GpuIndex):
    # (res, d, metric, bucketSize, seed, config) or (res, cpu_index, config)
    def __init__(self, *args: Any) -> None: ...
    def numClusters(self) -> int: ...

class GpuIndexBitsSSS(_GpuMetricSpace, faiss.GpuIndex):
    # (res, d, metric, alpha, maxPivots, config) or (res, cpu_index, config)
    def __init__(self, *args: Any) -> None: ...
    def numPivots(self) -> int: ...

# ---- on several GPUs ---------------------------------------------------------

class GpuIndexBitsManyConfig:
    useFloat16: bool
    useBFloat16: bool
    keepSearchImage: bool
    usePeerAccess: bool
    joinSameDevice: bool
    leastPiece: int
    def __init__(self, **fields: Any) -> None: ...

class _Many(faiss.Index):
    search_mode: str
    def __init__(
        self,
        devices: Sequence[int],
        of: int | faiss.IndexFlat,
        metric: _Metric | None = None,
        config: GpuIndexBitsManyConfig | None = None,
        *,
        resources: Sequence[_Resources] | None = None,
    ) -> None: ...
    def count(self) -> int: ...

class GpuIndexBitsShards(_Many):
    def shardSize(self, shard: int) -> int: ...
    def shardDevice(self, shard: int) -> int: ...
    def shardK(self, shard: int, n: int, k: int) -> int: ...

class GpuIndexBitsReplicas(_Many): ...

class GpuIndexBitsMetricSpaceShards(faiss.Index):
    stages: str
    def __init__(
        self,
        devices: Sequence[int],
        index: faiss.Index,
        config: GpuIndexBitsManyConfig | None = None,
        *,
        resources: Sequence[_Resources] | None = None,
    ) -> None: ...
    def count(self) -> int: ...
    def shardSize(self, shard: int) -> int: ...
    def shardDevice(self, shard: int) -> int: ...
    def numDistances(self) -> int: ...
    def resetDistances(self) -> None: ...

# ---- parameters of searches --------------------------------------------------

class SearchParametersBitsFlat(faiss.SearchParameters):
    sel: Any | None
    resources: _Resources | None
    max_results: int
    def __init__(
        self,
        *,
        sel: Any | None = None,
        resources: _Resources | None = None,
        max_results: int = 0,
    ) -> None: ...

class SearchParametersBitsIVF(faiss.SearchParametersIVF):
    sel: Any | None
    nprobe: int
    quantizer_params: Any | None
    max_results: int
    def __init__(
        self,
        params: Any | None = None,
        *,
        max_results: int | None = None,
        **fields: Any,
    ) -> None: ...

class DeviceSelector(faiss.IDSelector):
    def __init__(self, sel: faiss.IDSelector, n: int, device: int = -1) -> None: ...
    def numVectors(self) -> int: ...
    def numSelected(self) -> int: ...
    def device(self) -> int: ...
