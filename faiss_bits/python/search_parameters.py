"""What goes into index.search(params=...), in Python's manners: SearchParameters
and selectors of ours."""

import faiss

from .arrays import int64_number, whole_number
from .devices import is_provider, require_gpu


def wrap_search_parameters(the_class):
    """SearchParametersBitsFlat with keyword arguments, which takes resources as
    the constructor of an index does and keeps its selector alive."""
    original_init = the_class.__init__
    resources = the_class.resources

    def __init__(self, *, sel=None, resources=None, max_results=0):
        original_init(self)
        self.max_results = int64_number(max_results, "max_results", 0)
        if sel is not None:
            self.sel = sel
        if resources is not None:
            self.resources = resources

    def set_resources(self, given):
        if is_provider(given):
            given = given.getResources()
        kind = getattr(faiss, "GpuResources", ())
        if given is not None and not isinstance(given, kind):
            raise TypeError(
                f"resources is a {type(given).__name__}, expected "
                "faiss.StandardGpuResources or the getResources() of an index"
            )
        resources.fset(self, given)

    __init__.__doc__ = _PARAMETERS_DOC
    the_class.__init__ = __init__
    the_class.sel = _selector_of(the_class)
    the_class.resources = property(
        resources.fget,
        set_resources,
        doc="What the search runs on; None: the resources of the index.",
    )


def _selector_of(the_class):
    """Its property sel, which keeps the selector alive."""
    selector = the_class.sel

    def set_sel(self, sel):
        if sel is None:
            selector.fset(self, None)
        elif isinstance(sel, faiss.IDSelector):
            owned = sel.thisown
            selector.fset(self, sel)
            sel.thisown = owned  # a pointer alone is stored
        else:
            raise TypeError(
                f"sel is a {type(sel).__name__}, expected a faiss.IDSelector"
            )
        self.__dict__["_selector"] = sel

    return property(
        selector.fget, set_sel, doc="The ids to search among; None: all."
    )


def wrap_ivf_search_parameters(the_class):
    """SearchParametersBitsIVF with keyword arguments, which keeps alive what it
    is given."""
    original_init = the_class.__init__
    quantizer_params = the_class.quantizer_params

    def __init__(self, params=None, *, max_results=None, **fields):
        if params is None:
            original_init(self)
        elif isinstance(params, faiss.SearchParametersIVF):
            original_init(self, params)
            self.__dict__["_given"] = params
        else:
            raise TypeError(
                f"params is a {type(params).__name__}, expected a "
                "faiss.SearchParametersIVF"
            )
        if max_results is None:
            max_results = getattr(params, "max_results", 0)
        self.max_results = int64_number(max_results, "max_results", 0)
        for name, value in fields.items():
            if name not in _IVF_FIELDS:
                raise TypeError(
                    f"{name} is none of the fields "
                    + ", ".join((*_IVF_FIELDS, "max_results"))
                )
            setattr(self, name, value)

    def set_quantizer_params(self, params):
        owned = getattr(params, "thisown", False)
        quantizer_params.fset(self, params)
        if params is not None:
            params.thisown = owned  # a pointer alone is stored
        self.__dict__["_quantizer_params"] = params

    __init__.__doc__ = _IVF_PARAMETERS_DOC
    the_class.__init__ = __init__
    the_class.sel = _selector_of(the_class)
    the_class.quantizer_params = property(
        quantizer_params.fget,
        set_quantizer_params,
        doc="Parameters of the search for lists; None: none.",
    )


_IVF_FIELDS = ("nprobe", "sel", "quantizer_params")

_IVF_PARAMETERS_DOC = """SearchParametersBitsIVF(params=None, *, nprobe=1, sel=None, quantizer_params=None, max_results=None)

    faiss.SearchParametersIVF with a limit for range_search of our inverted lists
    on the GPU, which also take the limit as a keyword:

        params = faiss_bits.SearchParametersBitsIVF(nprobe=8, max_results=10**6)
        lims, D, I = index.range_search(xq, radius, params=params)

    params       a faiss.SearchParametersIVF to begin with; None: FAISS's defaults
    nprobe, sel, quantizer_params
                 as FAISS's
    max_results  for range_search: the most results of all queries together; more
                 are an error that tells their number. 0: any number. None: that
                 of params, or 0

    It keeps all of them alive.
    """

_PARAMETERS_DOC = """SearchParametersBitsFlat(sel=None, resources=None, max_results=0)

    Parameters of one search of a GpuIndexBitsFlat, with resources of its own. So
    threads search one index at the same time:

        res = faiss.StandardGpuResources()  # one a thread
        params = faiss_bits.SearchParametersBitsFlat(resources=res)
        D, I = index.search(xq, k, params=params)

    sel        a faiss.IDSelector: the ids to search among; None: all
    resources  faiss.StandardGpuResources, or the getResources() of an index; None:
               those of the index, which one thread at a time may use
    max_results  for range_search: the most results of all queries together; more
               are an error that tells their number. 0: any number

    It keeps both alive. Nothing else may use the same resources meanwhile, and no
    call may change the index. The first search on a resources object makes its
    temporary memory, 1.5 GiB unless setTempMemory() says otherwise.
    """


def wrap_device_selector(the_class):
    """DeviceSelector with keyword arguments and checks of its own."""
    original_init = the_class.__init__

    def __init__(self, sel, n, device=-1):
        require_gpu("DeviceSelector")
        if not isinstance(sel, faiss.IDSelector):
            raise TypeError(
                f"sel is a {type(sel).__name__}, expected a faiss.IDSelector"
            )
        # It is read here and not kept.
        original_init(
            self,
            sel,
            int64_number(n, "n", 0),
            whole_number(device, "device", -1),
        )

    def __repr__(self):
        return (
            f"<DeviceSelector of {self.numSelected()} of {self.numVectors()} "
            f"ids, device {self.device()}>"
        )

    __init__.__doc__ = _SELECTOR_DOC
    the_class.__init__ = __init__
    the_class.__repr__ = __repr__


_SELECTOR_DOC = """DeviceSelector(sel, n, device=-1)

    What `sel` selects of the ids 0 .. n - 1, made ready on a GPU for many
    searches:

        chosen = faiss_bits.DeviceSelector(faiss.IDSelectorBatch(ids), index.ntotal)
        D, I = index.search(xq, k, params=faiss.SearchParameters(sel=chosen))

    sel     any faiss.IDSelector; it is read here and not needed later
    n       ntotal of the indexes that it is for
    device  GPU of these indexes; -1: the current one

    Keep it in a variable while it is in use: SearchParameters of FAISS 1.7.3
    does not keep its selector alive.

    Raises RuntimeError where there is no GPU, or naming a bad argument.
    """
