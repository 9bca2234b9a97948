"""Rivals of bench_range.py: range searches of torch, cuML, Open3D and FAISS.

Each is a class: made with (torch, n, d, q, metric) for uniform vectors and
queries, `search(radius)` gives the number of results, `radius` as FAISS has it
(squared L2). Members of the class: `METRICS`, `LEAST` (calls timed at least;
0 times the first call itself), where it does not take all `DIMENSIONS`, and
`versions()` for the result file's meta, which raises ImportError where the rival
is not installed.
"""

import math

#: Products of a step of torch, in elements.
STEP_ELEMENTS = 1 << 30


def uniform(torch, n, d, q):
    """The vectors and queries of every rival, on the device."""
    generator = torch.Generator("cuda").manual_seed(1)
    return [
        torch.rand(rows, d, device="cuda", generator=generator)
        for rows in (n, q)
    ]


class TorchRange:
    """Exact range search by torch: a matrix of distances, and nonzero()."""

    METRICS = ("l2", "ip")
    LEAST = 5

    @staticmethod
    def versions():
        import torch

        return {"torch": torch.__version__}

    def __init__(self, torch, n, d, q, metric):
        self.torch, self.metric = torch, metric
        self.xb, self.xq = uniform(torch, n, d, q)
        self.norms = (self.xb * self.xb).sum(1)
        self.build_ms = None

    def results(self, radius):
        """(lims, D, I) on the device."""
        torch = self.torch
        step = max(1, STEP_ELEMENTS // len(self.xb))
        parts = []
        for first in range(0, len(self.xq), step):
            xq = self.xq[first : first + step]
            values = xq @ self.xb.t()
            if self.metric == "l2":
                values.mul_(-2).add_(self.norms).add_((xq * xq).sum(1, True))
                inside = values < radius
            else:
                inside = values > radius
            rows, ids = inside.nonzero(as_tuple=True)
            counts = torch.bincount(rows, minlength=len(xq))
            parts.append((counts, values[inside], ids))
        counts, D, I = (
            torch.cat([part[i] for part in parts]) if len(parts) > 1 else parts[0][i]
            for i in range(3)
        )
        return torch.nn.functional.pad(counts.cumsum(0), (1, 0)), D, I

    def search(self, radius):
        return len(self.results(radius)[2])


class CumlRange:
    """cuML's radius_neighbors_graph: a random ball cover, made before and
    stated as `build_ms`, and a CSR matrix on the device without distances."""

    METRICS = ("l2",)
    LEAST = 3

    @staticmethod
    def versions():
        import cuml

        return {"cuml": cuml.__version__}

    def __init__(self, torch, n, d, q, metric):
        import time

        import cupy
        from cuml.neighbors import NearestNeighbors

        del metric  # squared L2 alone
        # Memory that is kept between calls, as torch's.
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)
        xb, xq = uniform(torch, n, d, q)
        torch.cuda.synchronize()
        self.xb, self.xq = cupy.from_dlpack(xb), cupy.from_dlpack(xq)
        begin = time.perf_counter()
        self.index = NearestNeighbors(algorithm="rbc").fit(self.xb)
        torch.cuda.synchronize()
        self.build_ms = 1e3 * (time.perf_counter() - begin)

    def search(self, radius):
        graph = self.index.radius_neighbors_graph(
            self.xq, radius=math.sqrt(radius)
        )
        return len(graph.indices)


class Open3dRange:
    """Open3D's fixed-radius search of points: a hash table of cells, made for the
    radius before and stated as `build_ms`; ids, squared distances and limits on the
    device, not sorted, ids of 32 bits."""

    METRICS = ("l2",)
    DIMENSIONS = (3,)
    LEAST = 3

    @staticmethod
    def versions():
        import open3d

        if not open3d.core.cuda.is_available():
            raise ImportError("this Open3D sees no GPU")
        return {"open3d": open3d.__version__}

    def __init__(self, torch, n, d, q, metric):
        from open3d import core

        del metric  # squared L2 alone
        self.torch = torch
        self.tensors = uniform(torch, n, d, q)
        torch.cuda.synchronize()  # Open3D has a stream of its own
        xb, self.xq, self.some = (
            core.Tensor.from_dlpack(torch.utils.dlpack.to_dlpack(x))
            for x in (*self.tensors, self.tensors[0][:16])
        )
        self.index = core.nns.NearestNeighborSearch(xb, core.int32)
        self.radius, self.build_ms = None, None

    def build(self, radius):
        import time

        begin = time.perf_counter()
        self.index.fixed_radius_index(radius)
        self.torch.cuda.synchronize()
        self.radius, self.build_ms = radius, 1e3 * (time.perf_counter() - begin)
        # Kernels that cannot be loaded are no error there: nothing is found.
        found = self.index.fixed_radius_search(self.some, radius, sort=False)[0]
        if len(found) < len(self.some):
            raise RuntimeError(
                f"Open3D found {len(found)} points near {len(self.some)} that are "
                "in its index: its kernels did not run"
            )

    def results(self, radius):
        """(lims, D, I) on the device, Open3D's tensors."""
        radius = math.sqrt(radius)
        if radius != self.radius:
            self.build(radius)
        ids, distances, lims = self.index.fixed_radius_search(
            self.xq, radius, sort=False
        )
        return lims, distances, ids

    def search(self, radius):
        return len(self.results(radius)[2])


class ContribRange:
    """FAISS's range_search_gpu: 1,024 neighbours on the GPU, and the CPU for
    queries with more of them; results on the host."""

    METRICS = ("l2", "ip")
    LEAST = 0  # a call takes seconds where many queries go to the CPU

    @staticmethod
    def versions():
        import faiss

        if not hasattr(faiss, "GpuIndexFlat"):
            raise ImportError("this FAISS has no GPU part")
        return {
            "faiss_contrib": faiss.__version__,
            "faiss_contrib_threads": faiss.omp_get_max_threads(),
        }

    def __init__(self, torch, n, d, q, metric):
        import faiss

        xb, xq = (x.cpu().numpy() for x in uniform(torch, n, d, q))
        kind = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
        self.xq, self.cpu = xq, faiss.IndexFlat(d, kind)
        self.cpu.add(xb)
        self.resources = faiss.StandardGpuResources()
        self.gpu = faiss.index_cpu_to_gpu(self.resources, 0, self.cpu)
        self.gpu.search(xq[:64], 10)  # so that its memory is there
        self.build_ms = None

    def search(self, radius):
        from faiss.contrib.exhaustive_search import range_search_gpu

        return int(range_search_gpu(self.xq, radius, self.gpu, self.cpu)[0][-1])


RIVALS = {
    "torch": TorchRange,
    "cuml": CumlRange,
    "open3d": Open3dRange,
    "faiss_contrib": ContribRange,
}
