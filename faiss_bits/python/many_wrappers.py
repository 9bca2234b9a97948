"""Gives our indexes on several GPUs the Python manners of the others."""

import faiss

from .arrays import whole_number
from .class_wrappers import take_ids_of_tensors, wrap_index
from .compiled import swigfaiss_bits
from .devices import check_device, is_provider, require_gpu
from .search_modes import by_name


def device_list(devices, resources=None):
    """A DeviceList of device numbers, with the resources that are given or, for
    None, new ones for each entry. Returns it and the resources."""
    devices = _as_list(devices)
    for device in devices:
        check_device(device)
    if resources is None:
        resources = [faiss.StandardGpuResources() for _ in devices]
    resources = _as_list(resources)
    if len(resources) != len(devices):
        raise ValueError(
            f"resources has {len(resources)} entries, and devices {len(devices)}"
        )
    places = swigfaiss_bits.DeviceList()
    for one, device in zip(resources, devices):
        if not is_provider(one):
            raise TypeError(
                f"resources has a {type(one).__name__}, expected "
                "faiss.StandardGpuResources"
            )
        places.add(one, device)
    return places, resources


def _as_list(values):
    """A Python list of any sequence, or of one of FAISS's C++ vectors."""
    if hasattr(values, "at") and hasattr(values, "size") and not hasattr(
        values, "__len__"
    ):
        return [values.at(i) for i in range(values.size())]
    return list(values)


def wrap_many_index(the_class):
    """Wraps GpuIndexBitsShards or GpuIndexBitsReplicas."""
    wrap_index(the_class)
    take_ids_of_tensors(the_class)
    the_class.search_mode = by_name(the_class.search_mode)
    original_init = the_class.__init__

    def __init__(self, devices, of, metric=None, config=None, *, resources=None):
        require_gpu(the_class.__name__)
        if config is None:
            config = swigfaiss_bits.GpuIndexBitsManyConfig()
        places, self_resources = device_list(devices, resources)
        if isinstance(of, faiss.Index):
            if metric is not None:
                raise TypeError("metric is that of the index which is copied")
            original_init(self, places, of, config)
        else:
            metric = faiss.METRIC_L2 if metric is None else metric
            original_init(self, places, whole_number(of, "d"), metric, config)
        self.referenced_objects = list(self_resources)

    __init__.__doc__ = _CONSTRUCTOR_DOC.format(name=the_class.__name__)
    the_class.__init__ = __init__


_CONSTRUCTOR_DOC = """{name}(devices, d, metric=faiss.METRIC_L2, config=None, *, resources=None)
        An empty index for vectors of d dimensions.
    {name}(devices, cpu_index, config=None, *, resources=None)
        A copy of a faiss.IndexFlat. `config` by its name.

    devices    list of int, a GPU for each part; one may come several times
    metric     as of GpuIndexBitsFlat
    config     GpuIndexBitsManyConfig
    resources  list of faiss.StandardGpuResources, one for each part; None: new
               ones, each with 1.5 GiB of temporary memory on its GPU

    Raises RuntimeError where there is no GPU, or naming a bad argument.
    """


def wrap_metric_space_shards(the_class):
    """Wraps GpuIndexBitsMetricSpaceShards."""
    wrap_index(the_class)
    the_class.stages = _stages_by_name(the_class.stages)
    original_init = the_class.__init__

    def __init__(self, devices, index, config=None, *, resources=None):
        require_gpu(the_class.__name__)
        if not isinstance(index, faiss.Index):
            raise TypeError(
                f"index is a {type(index).__name__}, expected an index for "
                "metric spaces"
            )
        if config is None:
            config = swigfaiss_bits.GpuIndexBitsManyConfig()
        places, self_resources = device_list(devices, resources)
        original_init(self, places, index, config)
        self.referenced_objects = list(self_resources)

    __init__.__doc__ = _METRIC_SPACE_DOC.format(name=the_class.__name__)
    the_class.__init__ = __init__


# By the numbers of RangeStages.
_STAGES = ("1", "1.5", "2")


def _stages_by_name(number):
    def set_stages(self, name):
        if not isinstance(name, str):
            raise TypeError(
                f"stages is a {type(name).__name__}, expected a name"
            )
        if name not in _STAGES:
            raise ValueError(
                f"stages = {name!r} is none of " + ", ".join(map(repr, _STAGES))
            )
        number.fset(self, _STAGES.index(name))

    return property(
        lambda self: _STAGES[number.fget(self)],
        set_stages,
        doc="""How range_search goes, by name; no answer depends on it.

        "1" (the default): each GPU finds out which of its own clusters a query has
        to look at. "1.5": each does it with the centers of all clusters. "2": each
        does it for a slice of the queries, and tells the others. Of SSS "1.5" is
        "1".""",
    )


_METRIC_SPACE_DOC = """{name}(devices, index, config=None, *, resources=None)
        An index for metric spaces, dealt out to several GPUs. The index is made
        first, unless it is, and not needed afterwards.

    devices    list of int, a GPU for each part; one may come several times
    index      GpuIndexBitsListOfClusters, GpuIndexBitsSSS, IndexListOfClusters or
               IndexSSS
    config     GpuIndexBitsManyConfig: usePeerAccess, joinSameDevice
    resources  list of faiss.StandardGpuResources, one for each part; None: new
               ones, each with 1.5 GiB of temporary memory on its GPU

    Raises RuntimeError where there is no GPU, or naming a bad argument.
    """


def wrap_many_config(the_class):
    """GpuIndexBitsManyConfig with keyword arguments."""
    original_init = the_class.__init__

    def __init__(self, **fields):
        original_init(self)
        for name, value in fields.items():
            if name not in _FIELDS:
                raise TypeError(
                    f"{name} is none of the fields " + ", ".join(_FIELDS)
                )
            setattr(self, name, value)

    __init__.__doc__ = _CONFIG_DOC
    the_class.__init__ = __init__


_FIELDS = (
    "useFloat16",
    "useBFloat16",
    "keepSearchImage",
    "usePeerAccess",
    "joinSameDevice",
    "leastPiece",
)

_CONFIG_DOC = """GpuIndexBitsManyConfig(**fields)

    Options of GpuIndexBitsShards and GpuIndexBitsReplicas, by keyword:

    useFloat16, useBFloat16, keepSearchImage
                    as of GpuIndexBitsFlatConfig
    usePeerAccess   bool, copies from GPU to GPU go straight where they can;
                    False: always through the host. True
    joinSameDevice  bool, parts on one GPU share queries and are merged in place;
                    False: as if each had a GPU of its own, for tests. True
    leastPiece      int, an addition to shards is cut into pieces of at least so
                    many vectors; 1024
    """
