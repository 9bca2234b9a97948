"""Copies of CPU indexes on several GPUs."""

from . import classes  # noqa: F401 (of what is returned)
from .arrays import whole_number
from .class_wrappers import check_index, refuse_lost_options
from .compiled import swigfaiss_bits
from .devices import get_num_gpus, require_gpu
from .many_wrappers import device_list


def index_cpu_to_gpu_multiple(resources, devices, index, co=None, config=None):
    """Copies a CPU index to several GPUs: every GPU gets all vectors, or with
    co.shard = True a part of them.

    Parameters
    ----------
    resources : list of faiss.StandardGpuResources, or None
        Of each part; kept alive by the result. None: new ones
    devices : list of int
        GPU of each part; one may come several times
    index : faiss.Index
        A faiss.IndexFlat, IndexIVFFlat, IndexIVFScalarQuantizer or IndexIVFPQ
        becomes a GpuIndexBitsReplicas or a GpuIndexBitsShards, also inside an
        IndexIDMap or IndexPreTransform. For one GPU: as index_cpu_to_gpu
    co : faiss.GpuMultipleClonerOptions, optional
        shard, shard_type (of inverted lists: 1: ids modulo the number of parts;
        2: ranges of ids; 4, where FAISS has it: whole lists), useFloat16,
        common_ivf_quantizer where FAISS has it
    config : GpuIndexBitsManyConfig, optional
        What FAISS's options have no field for

    Returns
    -------
    index : faiss.Index
        With the results of one index on one GPU, bit for bit. It can be filled,
        and inverted lists that are not trained can be trained

    Raises
    ------
    RuntimeError
        There is no GPU, or the memory of one is short; it is named
    ValueError, TypeError
        An argument is wrong
    """
    require_gpu("index_cpu_to_gpu_multiple")
    refuse_lost_options(co, "co", "config=GpuIndexBitsManyConfig(...)")
    check_index(index)
    places, resources = device_list(devices, resources)
    if config is None:
        config = swigfaiss_bits.GpuIndexBitsManyConfig()
    result = swigfaiss_bits.index_cpu_to_gpu_multiple(places, index, co, config)
    result.referenced_objects = list(resources)
    return result


def index_cpu_to_all_gpus(index, co=None, ngpu=-1, config=None):
    """index_cpu_to_gpu_multiple to all GPUs, or to the first ngpu, with new
    resources for each.

    Parameters
    ----------
    index : faiss.Index
        As there
    co : faiss.GpuMultipleClonerOptions, optional
        As there
    ngpu : int, optional
        GPUs to take; -1: all
    config : GpuIndexBitsManyConfig, optional
        As there

    Returns
    -------
    index : faiss.Index

    Raises
    ------
    RuntimeError, ValueError, TypeError
        As there
    """
    require_gpu("index_cpu_to_all_gpus")
    ngpu = whole_number(ngpu, "ngpu", -1)
    if ngpu == -1:
        ngpu = get_num_gpus()
    if not 1 <= ngpu <= get_num_gpus():
        raise ValueError(f"ngpu = {ngpu} is outside 1..{get_num_gpus()}")
    return index_cpu_to_gpu_multiple(None, range(ngpu), index, co, config)
