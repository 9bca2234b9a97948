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
