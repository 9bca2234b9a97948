"""Exact flat search as several libraries have it, on torch tensors.

A method is made of vectors [n, d] of float32 on the device, the metric and the
type of storage, and searched with float32 queries [q, d] there; it answers with
(distances, ids), both [q, k], on the device, and returns when they are enqueued.
What it keeps of the vectors is made before, outside the times. Metric "cosine"
is another matter: no library has an index for it, so each call gets the vectors
themselves, and norms are part of its time.
"""

import importlib
import importlib.metadata
import warnings

import torch

#: Most bytes of a tile of distances.
TILE_BYTES = 1 << 32


class Method:
    """What all methods have in common.

    modules   what has to be imported; the first one's version goes into the meta
    metrics, dtypes   what it takes
    needs_gpu  False if it runs on the CPU's tensors too
    """

    modules = ("torch",)
    metrics = ("L2", "IP")
    dtypes = ("float32",)
    needs_gpu = True

    def __init__(self, vectors, metric, dtype):
        raise NotImplementedError

    def repeated(self):
        """Share of the queries since the last call that were not certified at
        once; None where nothing counts them."""
        return None

    @classmethod
    def why_missing(cls):
        """Why it cannot be used here, or None."""
        for name in cls.modules:
            try:
                importlib.import_module(name)
            except (ImportError, OSError, RuntimeError) as error:
                text = str(error).strip() or type(error).__name__
                return text.splitlines()[0]
        return None

    @classmethod
    def version(cls):
        """(name, version) of the library."""
        name = cls.modules[0].partition(".")[0]
        module = importlib.import_module(name)
        version = getattr(module, "__version__", None)
        if version is None or version.endswith("unknown"):
            try:
                version = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                version = "unknown"
        return name, str(version)

    @classmethod
    def why_not(cls, cell):
        """Why it has no answer for a cell, or None."""
        return cls._not_known(cell)

    @classmethod
    def _not_known(cls, cell):
        for field, known in (("metric", cls.metrics), ("dtype", cls.dtypes)):
            if cell[field] not in known:
                return f"no {field} {cell[field]}"
        return None


# ---- torch ----------------------------------------------------------------------


class TorchFp32(Method):
    """Matrix product and topk, a tile of queries after the other. Vectors of 16
    bits are widened for the product: in their own type its results, rounded to
    16 bits, would be of no use."""

    metrics = ("L2", "IP", "cosine")
    dtypes = ("float32", "float16", "bfloat16")
    needs_gpu = False
    tf32 = False

    def __init__(self, vectors, metric, dtype):
        self.metric = metric
        self.vectors = vectors.to(getattr(torch, dtype))
        self.norms = None
        if metric == "L2":
            self.norms = self._norms(self.vectors)

    @staticmethod
    def _norms(vectors):
        norms = torch.empty(len(vectors), device=vectors.device)
        for begin in range(0, len(vectors), 1 << 18):
            part = vectors[begin : begin + (1 << 18)].float()
            norms[begin : begin + len(part)] = (part * part).sum(1)
        return norms

    def search(self, queries, k):
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        try:
            return self._search(queries, k)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def _search(self, queries, k):
        vectors = self.vectors.float()  # itself, if it is float32
        if self.metric == "cosine":
            vectors = torch.nn.functional.normalize(vectors)
            queries = torch.nn.functional.normalize(queries.float())
        n, k = len(vectors), min(k, len(vectors))
        rows = max(1, min(len(queries), TILE_BYTES // (4 * n)))
        distances = torch.empty((len(queries), k), device=queries.device)
        ids = torch.empty(
            (len(queries), k), dtype=torch.int64, device=queries.device)
        for begin in range(0, len(queries), rows):
            tile = queries[begin : begin + rows]
            out = (distances[begin : begin + rows], ids[begin : begin + rows])
            if self.metric == "L2":
                keys = torch.addmm(self.norms, tile, vectors.T, alpha=-2)
                torch.topk(keys, k, dim=1, largest=False, out=out)
                out[0].add_((tile * tile).sum(1, keepdim=True))
            else:
                torch.topk(tile @ vectors.T, k, dim=1, out=out)
            del out
        return distances, ids


class TorchTf32(TorchFp32):
    tf32 = True
    needs_gpu = True


# ---- FlashLib -------------------------------------------------------------------


class FlashLibFp32(Method):
    """flash_knn as it chooses by itself. Its float32 products are TF32."""

    modules = ("flashlib", "triton")
    metrics = ("L2",)
    kind = torch.float32

    def __init__(self, vectors, metric, dtype):
        from flashlib import flash_knn

        self.flash_knn = flash_knn
        self.vectors = vectors.to(self.kind)

    def search(self, queries, k):
        return self.flash_knn(queries.to(self.kind), self.vectors, k)

    @classmethod
    def why_not(cls, cell):
        if cell["k"] > cell["n"]:
            return "k above n"
        return super().why_not(cell)


class FlashLibBf16(FlashLibFp32):
    kind = torch.bfloat16


# ---- cuVS -----------------------------------------------------------------------


class Cuvs(Method):
    """brute_force on torch's current stream, into tensors of torch; scratch
    from a pool of memory, as cuVS advises."""

    modules = ("cuvs", "cuvs.neighbors.brute_force", "rmm")
    metrics = ("L2", "IP")
    dtypes = ("float32", "float16")
    pool = None
    _names = {"L2": "sqeuclidean", "IP": "inner_product"}

    def __init__(self, vectors, metric, dtype):
        import rmm
        from cuvs.common import Resources
        from cuvs.neighbors import brute_force

        if Cuvs.pool is None:
            Cuvs.pool = rmm.mr.CudaAsyncMemoryResource()
            rmm.mr.set_current_device_resource(Cuvs.pool)
        self.brute_force = brute_force
        # Stream 0, torch's default, counts as none: cuVS then takes the
        # thread's own, which waits for stream 0 and is waited for by it.
        self.resources = Resources(
            stream=torch.cuda.current_stream().cuda_stream)
        self.kind = getattr(torch, dtype)
        self.vectors = vectors.to(self.kind)  # the index refers to it
        self.index = brute_force.build(
            self.vectors, metric=self._names[metric], resources=self.resources)

    def search(self, queries, k):
        queries = queries.to(self.kind)
        shape = (len(queries), k)
        distances = torch.empty(shape, device=queries.device)
        ids = torch.empty(shape, dtype=torch.int64, device=queries.device)
        self.brute_force.search(
            self.index, queries, k, neighbors=ids, distances=distances,
            resources=self.resources)
        return distances, ids

    @classmethod
    def why_not(cls, cell):
        if cell["k"] > cell["n"]:
            return "k above n"
        return super().why_not(cell)


# ---- FAISS and ours -------------------------------------------------------------


class FaissFlat(Method):
    """GpuIndexFlat; for cosines knn_gpu of unit vectors, made at each call."""

    modules = ("faiss", "faiss.contrib.torch_utils")
    metrics = ("L2", "IP", "cosine")
    dtypes = ("float32", "float16")

    @classmethod
    def why_missing(cls):
        missing = super().why_missing()
        if missing is None:
            faiss = importlib.import_module("faiss")
            if not hasattr(faiss, "GpuIndexFlat"):
                missing = f"FAISS {faiss.__version__} without GPU support"
        return missing

    @classmethod
    def why_not(cls, cell):
        if cell["k"] >= 2048:
            return "k of 2048 or more"
        if cell["metric"] == "cosine" and cell["dtype"] != "float32":
            return "no cosines of 16 bits"
        return super().why_not(cell)

    def __init__(self, vectors, metric, dtype):
        import faiss
        import faiss.contrib.torch_utils  # noqa: F401 (search() of tensors)

        self.faiss, self.metric = faiss, metric
        # Default temporary memory, for each class its own; to make them takes
        # longer than many a cell.
        cls = type(self)
        if "shared_resources" not in vars(cls):
            cls.shared_resources = faiss.StandardGpuResources()
        self.resources = cls.shared_resources
        if metric == "cosine":
            self.vectors = vectors
            return
        number = {"L2": faiss.METRIC_L2, "IP": faiss.METRIC_INNER_PRODUCT}
        config = self._config(dtype)
        self.index = self._index()(
            self.resources, vectors.shape[1], number[metric], config)
        self.index.add(vectors)

    def _index(self):
        return self.faiss.GpuIndexFlat

    def _config(self, dtype):
        config = self.faiss.GpuIndexFlatConfig()
        config.useFloat16 = dtype == "float16"
        return config

    def search(self, queries, k):
        if self.metric != "cosine":
            return self.index.search(queries, k)
        unit = torch.nn.functional.normalize
        return self.faiss.knn_gpu(
            self.resources, unit(queries), unit(self.vectors), k,
            metric=self.faiss.METRIC_INNER_PRODUCT)


class FaissBits(FaissFlat):
    """GpuIndexBitsFlat as it is by default; for cosines faiss_bits.knn."""

    modules = FaissFlat.modules + ("faiss_bits",)
    dtypes = ("float32", "float16", "bfloat16")
    mode = "certified"

    @classmethod
    def why_not(cls, cell):
        if cell["metric"] == "cosine" and cell["dtype"] == "bfloat16":
            return "no call for cosines of bfloat16"
        return cls._not_known(cell)

    @classmethod
    def why_missing(cls):
        missing = super().why_missing()
        if missing is None:
            ours = importlib.import_module("faiss_bits")
            if not hasattr(ours, "GpuIndexBitsFlat"):
                missing = "this build of faiss_bits has no GPU part"
        return missing

    def __init__(self, vectors, metric, dtype):
        import faiss_bits

        self.ours = faiss_bits
        super().__init__(vectors, metric, dtype)
        if metric == "cosine":
            self.vectors = vectors.to(getattr(torch, dtype))
        else:
            self.index.search_mode = self.mode

    def _index(self):
        return self.ours.GpuIndexBitsFlat

    def _config(self, dtype):
        config = self.ours.GpuIndexBitsFlatConfig()
        config.useFloat16 = dtype == "float16"
        config.useBFloat16 = dtype == "bfloat16"
        return config

    def search(self, queries, k):
        if self.metric != "cosine":
            return self.index.search(queries, k)
        return self.ours.knn(
            queries.to(self.vectors.dtype), self.vectors, k, metric="cosine",
            res=self.resources, search_mode=self.mode)


    def repeated(self):
        if self.metric == "cosine":
            return None
        stats = self.index.stats()
        self.index.reset_stats()
        queries = stats.certified + stats.repeated
        return stats.repeated / queries if queries else None


class FaissBitsFp32(FaissBits):
    mode = "plain"


METHODS = {
    "faiss_bits": FaissBits,
    "faiss_bits_fp32": FaissBitsFp32,
    "faiss_flat": FaissFlat,
    "torch_fp32": TorchFp32,
    "torch_tf32": TorchTf32,
    "cuvs": Cuvs,
    "flashlib_fp32": FlashLibFp32,
    "flashlib_bf16": FlashLibBf16,
}


def usable(names, device, meta):
    """The methods of `names` that can be used, by name. Of the others the
    meta's "missing" says why, of these the meta has the versions.

    RuntimeError where the meta is of another version."""
    found, missing = {}, dict(meta.get("missing", {}))
    for name in names:
        if name not in METHODS:
            raise RuntimeError(
                f"method {name!r} is none of {', '.join(METHODS)}")
        method = METHODS[name]
        why = method.why_missing()
        if why is None and method.needs_gpu and device == "cpu":
            why = "runs on a GPU only"
        if why is not None:
            warnings.warn(f"{name} is left out: {why}", stacklevel=2)
            missing[name] = why
            continue
        missing.pop(name, None)
        library, version = method.version()
        if meta.setdefault(library, version) != version:
            raise RuntimeError(
                f"the file is of {library} {meta[library]}, this is {version}")
        found[name] = method
    meta.pop("missing", None)
    if missing:
        meta["missing"] = missing
    return found
