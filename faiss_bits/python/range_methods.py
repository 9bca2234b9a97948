"""range_search() of index classes on the GPU, for numpy arrays and for tensors, with
a limit of its results."""

import functools

import faiss
import numpy as np

from .arrays import float32_number
from .compiled import swigfaiss_bits
from .devices import place_of
from .ranges import like, limit, number, tensors_of
from .torch_interop import is_tensor
from .torch_methods import check_vectors


def wrap_range_search(the_class):
    """range_search() of a GPU flat index class, on its method for numpy
    arrays."""
    _wrap(the_class, _with_limit, _FLAT_DOC)


def wrap_ivf_range_search(the_class):
    """The same of a GPU class of inverted lists."""
    _wrap(the_class, _ivf_with_limit, _IVF_DOC)


def wrap_metric_range_search(the_class):
    """The same of a GPU class for metric spaces."""
    _wrap(the_class, _with_limit, _METRIC_DOC)


def _wrap(the_class, with_limit, doc):
    numpy_method = the_class.range_search

    # FAISS's replace_method() goes by the name, which wraps() keeps.
    @functools.wraps(numpy_method)
    def index_range_search(self, x, thresh, *, params=None, max_results=None):
        thresh = float32_number(number(thresh, "thresh"), "thresh")
        params = with_limit(params, limit(max_results))
        if not is_tensor(x):
            return numpy_method(self, x, thresh, params=params)
        n = check_vectors(self, x)
        if not x.is_cuda:
            lims, D, I = numpy_method(self, x.numpy(), thresh, params=params)
            return like(x, (lims.astype(np.int64), D, I))
        _, stream = place_of(x, -1)
        return tensors_of(
            lambda allocate, lims: swigfaiss_bits.rangeSearchOnStream(
                self, stream, n, x.data_ptr(), thresh, params, allocate, lims
            ),
            n,
            x.device,
        )

    del index_range_search.__wrapped__  # it takes more than FAISS's
    index_range_search.__doc__ = doc
    index_range_search._checks_numpy = True
    index_range_search._takes_limit = True
    the_class.range_search = index_range_search


def _with_limit(
    params, most, takes="faiss.SearchParameters or SearchParametersBitsFlat"
):
    """Parameters of a search with max_results; those of the caller stay."""
    if not most:
        return params
    kind = swigfaiss_bits.SearchParametersBitsFlat
    if params is not None and type(params) not in (kind, faiss.SearchParameters):
        raise TypeError(
            f"params is a {type(params).__name__}; with max_results it can be a "
            f"{takes}"
        )
    limited = kind(
        sel=None if params is None else params.sel,
        resources=getattr(params, "resources", None),
        max_results=most,
    )
    limited.__dict__["_given"] = params  # it keeps its selector alive
    return limited


def _ivf_with_limit(params, most):
    """The same for inverted lists. A SearchParametersIVF has its own nprobe; others
    leave it to the index."""
    if not most or not isinstance(params, faiss.SearchParametersIVF):
        return _with_limit(
            params,
            most,
            "faiss.SearchParametersIVF, SearchParametersBitsIVF, "
            "faiss.SearchParameters or SearchParametersBitsFlat",
        )
    return swigfaiss_bits.SearchParametersBitsIVF(params, max_results=most)


_DOC = """Finds all vectors that are nearer than a radius to each query{among}.

    Parameters
    ----------
    x : array_like
        Queries, shape (n, d), float32: numpy, or a torch tensor on the CPU or
        on the index's GPU
    thresh : float
        The radius: vectors at a distance below it are found{similarities}.
        L2 distances are squared. Not NaN
    params : {params}
    max_results : int, optional
        The most results of all queries together; more are an error that tells
        their number. None: any number

    Returns
    -------
    lims : array_like
        Where the results of each query begin, shape (n + 1,): those of query i
        are lims[i] to lims[i + 1] - 1
    D : array_like
        Distances, shape (lims[-1],), float32
    I : array_like
        Ids, shape (lims[-1],), int64, {order}

    Notes
    -----
    Results of a tensor on the GPU are tensors there. The call waits for the GPU,
    on which its parts are made by torch. Distances are canonical{notes}; NaN is in
    no range.
    """

_FLAT_DOC = _DOC.format(
    among="",
    similarities=""", and for
        similarities (inner product, Jaccard) those above it""",
    params="""faiss.SearchParameters or SearchParametersBitsFlat, optional
        sel: the ids to search among. Of ours also resources and max_results""",
    order="ascending for each query",
    notes=", whatever\n    search_mode says",
)
_IVF_DOC = _DOC.format(
    among=", in the\n    nprobe lists that are nearest to it",
    similarities=""", and for
        inner products those above it""",
    params="""faiss.SearchParametersIVF or SearchParametersBitsIVF, optional
        nprobe, quantizer_params and sel: the ids to search among; of ours also
        max_results. A faiss.SearchParameters or a SearchParametersBitsFlat
        leaves nprobe to the index""",
    order="""for each query in the order of its lists,
        nearest first, and of their vectors""",
    notes=""", of
    the vectors as the lists have them""",
)
_METRIC_DOC = _DOC.format(
    among="",
    similarities="",
    params="""faiss.SearchParameters or SearchParametersBitsFlat, optional
        Of ours max_results alone: there are no filters""",
    order="ascending for each query",
    notes="",
)
