"""Inverted lists as several libraries have them, on torch tensors.

A method is made of vectors [n, d] of float32 on the device, a kind of index and
what ivf_shared.train has learned, and searched with float32 queries [q, d]
there; it answers with (distances, ids), both [q, k], on the device.
"""

import torch

from flat_methods import Method
from ivf_shared import nearest

#: Vectors that are added together.
BATCH = 1 << 20


def parts_of(index):
    """32 of "ivf_pq32"; None of what is no product code."""
    if index.startswith("ivf_pq") and index[6:].isdigit():
        return int(index[6:])
    return None


class IvfMethod(Method):
    """indexes  what kinds it has, "ivf_pq" being those of any number of parts
    own_lists  True if it trains by itself: other lists than everyone's"""

    indexes = ("ivf_flat", "ivf_pq")
    own_lists = False

    def __init__(self, vectors, index, trained):
        raise NotImplementedError

    def search(self, queries, k, nprobe):
        raise NotImplementedError

    @classmethod
    def why_not(cls, index):
        """Why it has no such index, or None."""
        kind = "ivf_pq" if parts_of(index) else index
        return None if kind in cls.indexes else f"no {index}"


class FaissIvf(IvfMethod):
    """GpuIndexIVFFlat, IVFScalarQuantizer (8 bits) or IVFPQ (8 bits a part,
    precomputed tables), of FAISS's own kernels."""

    modules = ("faiss", "faiss.contrib.torch_utils")
    indexes = ("ivf_flat", "ivf_sq8", "ivf_pq")
    use_cuvs = False
    has_tables = True

    @classmethod
    def why_missing(cls):
        missing = super().why_missing()
        if missing is None:
            import faiss

            missing = cls._not_this(faiss)
        return missing

    @classmethod
    def _not_this(cls, faiss):
        """Why a FAISS is not the one that is meant, or None."""
        if not hasattr(faiss, "GpuIndexIVFFlat"):
            return f"FAISS {faiss.__version__} without GPU support"
        return None

    def __init__(self, vectors, index, trained):
        import faiss

        self.resources = faiss.StandardGpuResources()
        self.index = self._to_gpu(
            faiss, index, self._trained(faiss, vectors, index, trained))
        for batch in vectors.split(BATCH):
            self.index.add(batch.contiguous())

    @staticmethod
    def _trained(faiss, vectors, index, trained):
        """An index of the CPU without vectors."""
        nlist, d = trained["centroids"].shape
        quantizer = faiss.IndexFlatL2(d)
        quantizer.add(trained["centroids"].cpu().numpy())
        if index == "ivf_flat":
            made = faiss.IndexIVFFlat(quantizer, d, nlist)
        elif index == "ivf_sq8":
            made = faiss.IndexIVFScalarQuantizer(
                quantizer, d, nlist, faiss.ScalarQuantizer.QT_8bit)
            made.train(vectors[: 1 << 16].cpu().numpy())
        else:
            made = faiss.IndexIVFPQ(quantizer, d, nlist, parts_of(index), 8)
            faiss.copy_array_to_vector(
                trained["codebook"].cpu().numpy().ravel(), made.pq.centroids)
        made.is_trained = True
        return made

    def _to_gpu(self, faiss, index, cpu):
        names = {"ivf_flat": "IVFFlat", "ivf_sq8": "IVFScalarQuantizer"}
        name = "GpuIndex" + names.get(index, "IVFPQ")
        config = getattr(faiss, name + "Config")()
        if hasattr(config, "use_cuvs"):
            config.use_cuvs = self.use_cuvs
        if name == "GpuIndexIVFPQ":
            config.usePrecomputedTables = self.has_tables
        return self._class(faiss, name)(self.resources, cpu, config)

    def _class(self, faiss, name):
        return getattr(faiss, name)

    def search(self, queries, k, nprobe):
        self.index.nprobe = nprobe
        return self.index.search(queries, k)


class FaissBitsIvf(FaissIvf):
    """Our classes, as they are by default."""

    # It takes tensors by itself.
    modules = ("faiss", "faiss_bits")
    has_tables = False

    @classmethod
    def why_missing(cls):
        missing = super().why_missing()
        if missing is None:
            import faiss_bits

            if not hasattr(faiss_bits, "GpuIndexBitsIVFFlat"):
                missing = "this build of faiss_bits has no GPU part"
        return missing

    def _class(self, faiss, name):
        import faiss_bits

        return getattr(faiss_bits, name.replace("Index", "IndexBits"))


class Faiss115Ivf(FaissIvf):
    """Of another release than the one that ours is built with; --env of
    ivf_rivals.py says where it is."""

    @classmethod
    def _not_this(cls, faiss):
        release = tuple(int(part) for part in faiss.__version__.split(".")[:2])
        if release < (1, 15):
            return f"FAISS {faiss.__version__} is older than 1.15"
        return super()._not_this(faiss)


class FaissCuvsIvf(Faiss115Ivf):
    """FAISS's classes with use_cuvs."""

    use_cuvs = True
    has_tables = False

    @classmethod
    def _not_this(cls, faiss):
        if "CUVS" not in faiss.get_compile_options():
            return f"FAISS {faiss.__version__} without cuVS"
        return super()._not_this(faiss)


class CuvsIvf(IvfMethod):
    """ivf_flat and ivf_pq of cuVS, with its own balanced lists, on torch's
    current stream; scratch from a pool of memory, as cuVS advises."""

    modules = ("cuvs", "cuvs.neighbors.ivf_flat", "cuvs.neighbors.ivf_pq", "rmm")
    own_lists = True
    pool = None

    def __init__(self, vectors, index, trained):
        import rmm
        from cuvs.common import Resources
        from cuvs.neighbors import ivf_flat, ivf_pq

        if CuvsIvf.pool is None:
            CuvsIvf.pool = rmm.mr.CudaAsyncMemoryResource()
            rmm.mr.set_current_device_resource(CuvsIvf.pool)
        # Stream 0, torch's default, counts as none: flat_methods.Cuvs.
        self.resources = Resources(
            stream=torch.cuda.current_stream().cuda_stream)
        parts = parts_of(index)
        self.library = ivf_pq if parts else ivf_flat
        nlist = len(trained["centroids"])
        more = {"pq_dim": parts, "pq_bits": 8} if parts else {}
        self.index = self.library.build(
            self.library.IndexParams(
                n_lists=nlist, metric="sqeuclidean", **more),
            vectors, resources=self.resources)

    def search(self, queries, k, nprobe):
        shape = (len(queries), k)
        distances = torch.empty(shape, device=queries.device)
        ids = torch.empty(shape, dtype=torch.int64, device=queries.device)
        self.library.search(
            self.library.SearchParams(n_probes=nprobe), self.index, queries, k,
            neighbors=ids, distances=distances, resources=self.resources)
        return distances, ids


class FlashLibIvf(IvfMethod):
    """flash_ivf_flat_search and flash_ivf_pq_search as they choose by
    themselves; the index is put together of everyone's centroids."""

    modules = ("flashlib", "flashlib.primitives.ivf_flat",
               "flashlib.primitives.ivf_pq", "triton")

    def __init__(self, vectors, index, trained):
        from flashlib.primitives import ivf_flat, ivf_pq

        centroids = trained["centroids"]
        nlist, d = centroids.shape
        where = nearest(vectors, centroids)[:, 0]
        sizes = torch.bincount(where, minlength=nlist)
        order = where.argsort(stable=True)
        offsets = torch.zeros(nlist + 1, dtype=torch.int64, device=vectors.device)
        offsets[1:] = sizes.cumsum(0)
        common = {
            "centroids": centroids, "ids": order, "list_offsets": offsets,
            "metric": "l2", "D": d, "Dp": d, "nlist": nlist, "nprobe": 1,
            "max_list_len": int(sizes.max())}
        parts = parts_of(index)
        if not parts:
            self.call = ivf_flat.flash_ivf_flat_search
            self.index = ivf_flat.IvfFlatIndex(data=vectors[order], **common)
            return
        self.call = ivf_pq.flash_ivf_pq_search
        self.index = ivf_pq.IvfPqIndex(
            codes=encode(vectors, where, centroids, trained["codebook"])[order],
            pq_codebooks=trained["codebook"], by_residual=True,
            dsub=d // parts, m=parts, nbits=8, **common)

    def search(self, queries, k, nprobe):
        return self.call(self.index, queries, k, nprobe=nprobe)


def encode(vectors, where, centroids, codebook):
    """Product codes [n, parts] uint8 of vectors less their centroids."""
    parts, _, dims = codebook.shape
    codes = torch.empty(
        (len(vectors), parts), dtype=torch.uint8, device=vectors.device)
    for begin in range(0, len(vectors), BATCH):
        part = slice(begin, begin + BATCH)
        rest = vectors[part] - centroids[where[part]]
        for i, book in enumerate(codebook):
            codes[part, i] = nearest(
                rest[:, i * dims : (i + 1) * dims], book)[:, 0].to(torch.uint8)
    return codes


METHODS = {
    "faiss_bits": FaissBitsIvf,
    "faiss": FaissIvf,
    "faiss_115": Faiss115Ivf,
    "faiss_cuvs": FaissCuvsIvf,
    "cuvs": CuvsIvf,
    "flashlib": FlashLibIvf,
}
