"""Python manners of the CPU part's classes, beyond those of class_wrappers.py:
names of variants, numpy arrays of ids, copies and pickles."""

import functools

import faiss
import numpy as np

from .arrays import (
    MOST_INT,
    float32_array,
    id_list,
    int64_number,
    int_number,
    neighbours,
    output,
    pointer,
)
from .class_wrappers import update_vectors, wrap_index
from .compiled import swigfaiss_bits
from .index_arguments import lists_array
from .search_modes import by_name

_BLOCKS = ("queryBlock", "vectorBlock", "depthBlock")
_FIELDS = ("variant", *_BLOCKS, "target", "arithmetic")


def wrap_choice(the_class):
    """FusedChoice(variant=..., ...), with variants by their names."""
    original_init = the_class.__init__
    instructions = the_class.target

    def __init__(
        self,
        variant="auto",
        queryBlock=0,
        vectorBlock=0,
        depthBlock=0,
        target="",
        arithmetic="auto",
    ):
        original_init(self)
        self.variant, self.target = variant, target
        self.arithmetic = arithmetic
        for name, value in zip(_BLOCKS, (queryBlock, vectorBlock, depthBlock)):
            setattr(self, name, int_number(value, name, 0))

    def set_target(self, name):
        if not isinstance(name, str):
            raise TypeError(f"target is a {type(name).__name__}, expected a name")
        instructions.fset(self, name)

    def __setattr__(self, name, value):
        if name not in (*_FIELDS, "this", "thisown"):
            raise AttributeError(f"FusedChoice has no {name!r}")
        object.__setattr__(self, name, value)

    the_class.__init__ = __init__
    the_class.__setattr__ = __setattr__
    the_class.__repr__ = _repr_choice
    the_class.variant = _named(
        the_class.variant,
        "variant",
        swigfaiss_bits.fusedVariantName,
        swigfaiss_bits.fusedVariantOf,
        "Where the search selects from its distances, by name.",
    )
    the_class.arithmetic = _named(
        the_class.arithmetic,
        "arithmetic",
        swigfaiss_bits.fusedArithmeticName,
        swigfaiss_bits.fusedArithmeticOf,
        "What finds the candidates of a certified search, by name.",
    )
    the_class.target = property(
        instructions.fget, set_target, doc="Instruction set, by name."
    )
    the_class.__doc__ = f"""{the_class.__doc__}

    variant      "auto", "buffered", "var1", "var5", "var6" or "direct"
    queryBlock   queries packed at a time by a thread; 0: chosen
    vectorBlock  vectors packed at a time for all threads; 0: chosen
    depthBlock   components packed at a time; 0: chosen
    target       instruction set, one of swigfaiss_bits.fusedTargets(); "": the
                 best that runs here
    arithmetic   what finds the candidates of a certified search: "auto",
                 "components" or "int16"; "bytes", "doubles": none, all pairs are
                 computed
    """


def _named(number, name, name_of, number_of, doc):
    """A property of an enum by the names of its values."""

    def get(self):
        return name_of(number.fget(self))

    def set_by_name(self, value):
        if not isinstance(value, str):
            raise TypeError(
                f"{name} is a {type(value).__name__}, expected a name"
            )
        try:
            number.fset(self, number_of(value))
        except RuntimeError as error:
            raise ValueError(str(error)) from None

    return property(get, set_by_name, doc=doc)


def choice_state(choice):
    """The fields of a FusedChoice as a dict of plain values."""
    return {name: getattr(choice, name) for name in _FIELDS}


def _repr_choice(self):
    fields = ", ".join(f"{k}={v!r}" for k, v in choice_state(self).items())
    return f"FusedChoice({fields})"


def wrap_fused_index(the_class):
    """IndexFusedFlat with numpy arrays and, for what FAISS's flat indexes take
    them for, torch tensors on the CPU."""
    wrap_index(the_class)
    the_class.search = _of_arrays(the_class)
    the_class.__init__.__doc__ = _CONSTRUCTOR_DOC
    the_class.knn_subset_c = the_class.knn_subset
    the_class.knn_subset = _knn_subset
    the_class.plan = _with_whole_numbers(the_class.plan)
    the_class.search_mode = by_name(the_class.search_mode)
    the_class.__getstate__ = _getstate
    the_class.__setstate__ = _setstate


def _of_arrays(the_class):
    """search(), by one call of C++ where numpy arrays are as that takes them:
    the checks of the other way, and FAISS's wrapper, take longer than a small
    search."""
    other_way = the_class.search

    @functools.wraps(other_way)
    def replacement(self, x, k, *, params=None, D=None, I=None, **kwargs):
        if (
            type(x) is np.ndarray
            and x.ndim == 2
            and type(k) is int
            and 0 < k <= MOST_INT
            and not kwargs
            and (params is None or isinstance(params, faiss.SearchParameters))
        ):
            shape = x.shape[0], k
            distances = np.empty(shape, np.float32) if D is None else D
            labels = np.empty(shape, np.int64) if I is None else I
            if swigfaiss_bits.searchArrays(
                self, x, k, distances, labels, params
            ):
                return distances, labels
        return other_way(self, x, k, params=params, D=D, I=I, **kwargs)

    return replacement


def _with_whole_numbers(plan):
    def replacement(self, n, k):
        return plan(self, int64_number(n, "n", 0), neighbours(k))

    replacement.__name__, replacement.__doc__ = plan.__name__, plan.__doc__
    return replacement


_CONSTRUCTOR_DOC = """IndexFusedFlat(d, metric=faiss.METRIC_L2, metricArg=0)
        An empty index for vectors of d >= 1 dimensions.
    IndexFusedFlat(index)
        The vectors and the metric of another flat index, copied.

    metricArg  p of METRIC_Lp, above 0, which may also be set later as metric_arg;
               of other metrics 0
    """


def wrap_fused_ivf_index(the_class):
    """IndexFusedIVFFlat with numpy arrays and torch tensors on the CPU, as
    IndexFusedFlat, and with search_preassigned of arrays."""
    # As C++ has it: the wrappers of later FAISS releases replace it.
    search_preassigned = the_class.search_preassigned
    wrap_index(the_class)
    the_class.search = _of_arrays(the_class)
    original_init = the_class.__init__

    def __init__(self, *args):
        original_init(self, *args)
        # A quantizer belongs to Python; an index that is copied is not needed.
        if len(args) > 1:
            self.referenced_objects = [args[0]]

    __init__.__doc__ = _IVF_CONSTRUCTOR_DOC
    the_class.__init__ = __init__
    the_class.update_vectors = _update_vectors
    the_class.search_preassigned_c = search_preassigned
    the_class.search_preassigned = _search_preassigned
    the_class.__getstate__ = _ivf_getstate
    the_class.__setstate__ = _ivf_setstate


_IVF_CONSTRUCTOR_DOC = """IndexFusedIVFFlat(quantizer, d, nlist, metric=faiss.METRIC_L2)
        An empty index for vectors of d dimensions in nlist lists, to be
        trained.
    IndexFusedIVFFlat(index)
        Lists, quantizer and settings of a faiss.IndexIVFFlat, copied.

    quantizer  any FAISS index of d dimensions; a flat one is searched by our
               kernels
    metric     faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT
    """


def _update_vectors(self, keys, x):
    """Replaces the vectors of some ids, in the lists that are nearest to the new
    ones. Needs a direct map: make_direct_map(), or set_direct_map_type().

    Parameters
    ----------
    keys : array_like or tensor
        (n,) int64: ids that are in the index. Of one that is there twice a map
        in an array takes the last vector; with a hash table it is an error
    x : array_like or tensor
        (n, d) float32

    Raises
    ------
    ValueError, TypeError
        keys or x is no array of that shape and kind
    RuntimeError
        There is no direct map; naming an id that is in no list, or a vector that
        is nearest to none. All vectors are as they were then
    """
    update_vectors(self, keys, x)


def _search_preassigned(
    self,
    x,
    k,
    Iq,
    Dq=None,
    *,
    store_pairs=False,
    params=None,
    D=None,
    I=None,
):
    """Finds the k nearest of each query in given lists.

    Parameters
    ----------
    x : array_like
        Queries, shape (n, d), float32
    k : int
        Number of neighbours, 1 or more
    Iq : array_like
        Numbers of lists, shape (n, nprobe) with the nprobe of the index or of
        params; below 0: none
    Dq : array_like, optional
        Distances of their centroids, shape (n, nprobe); not read
    store_pairs : bool, optional
        Labels are list << 32 | place in the list
    params : faiss.SearchParametersIVF, optional
        nprobe, sel and max_codes are honoured
    D, I : array_like, optional
        Arrays for the result, shape (n, k), float32 and int64

    Returns
    -------
    D : array_like
        Distances of the nearest, best first, shape (n, k)
    I : array_like
        Their ids; -1 where there are fewer than k
    """
    x = float32_array(x, "x")
    if x.ndim != 2 or x.shape[1] != self.d:
        raise ValueError(f"x has shape {x.shape}, expected (any, {self.d})")
    if params is not None and not isinstance(params, faiss.SearchParametersIVF):
        raise TypeError(
            f"params is a {type(params).__name__}, expected a "
            "faiss.SearchParametersIVF"
        )
    n = len(x)
    nprobe = min(self.nlist, self.nprobe if params is None else params.nprobe)
    lists = lists_array(Iq, "Iq", (n, nprobe))
    if Dq is not None and float32_array(Dq, "Dq").shape != lists.shape:
        raise ValueError(
            f"Dq has shape {np.shape(Dq)}, expected {lists.shape}"
        )
    k = neighbours(k)
    like = np.empty(0, np.float32)
    D = output(D, "D", like, (n, k), ("float32",))
    I = output(I, "I", like, (n, k), ("int64",))
    self.search_preassigned_c(
        n,
        pointer(x),
        k,
        pointer(lists),
        None,
        pointer(D),
        pointer(I),
        bool(store_pairs),
        params,
    )
    return D, I


# What searches heed and FAISS's files have not.
_IVF_SETTINGS = ("max_codes", "parallel_mode")


def _ivf_getstate(self):
    settings = {name: getattr(self, name) for name in _IVF_SETTINGS}
    return {"this": faiss.serialize_index(self).tobytes(), **settings}


def _ivf_setstate(self, state):
    # FAISS reads the bytes as its own IndexIVFFlat, of which we make ours.
    plain = faiss.deserialize_index(np.frombuffer(state["this"], np.uint8))
    self.__init__(plain)
    for name in _IVF_SETTINGS:
        if name in state:  # not in pickles of before
            setattr(self, name, state[name])


def _knn_subset(self, query_ids, reference_ids, k, *, D=None, I=None):
    """Finds, for some of the stored vectors, the k nearest among some of them.

    Parameters
    ----------
    query_ids : array_like or None
        Ids of the vectors to search for, shape (nq,), whole numbers in any
        order, repeats allowed; None: all
    reference_ids : array_like or None
        Ids of the vectors to search in, each once; None: all
    k : int
        Number of neighbours, 1 or more
    D : array_like, optional
        Distance array to store the result, shape (nq, k), float32
    I : array_like, optional
        Labels array to store the result, shape (nq, k), int64

    Returns
    -------
    D : array_like
        Distances of the nearest, best first, shape (nq, k)
    I : array_like
        Their ids in the index; -1 where there are fewer than k. A vector that
        is in both lists finds itself
    """
    queries, nq = id_list(query_ids, "query_ids", self.ntotal)
    references, nr = id_list(reference_ids, "reference_ids", self.ntotal)
    k = neighbours(k)
    like = np.empty(0, np.float32)
    D = output(D, "D", like, (nq, k), ("float32",))
    I = output(I, "I", like, (nq, k), ("int64",))
    self.knn_subset_c(
        nq,
        None if queries is None else pointer(queries),
        nr,
        None if references is None else pointer(references),
        k,
        pointer(D),
        pointer(I),
    )
    return D, I


def _getstate(self):
    vectors = faiss.serialize_index(self).tobytes()
    return {
        "this": vectors,
        "choice": choice_state(self.choice),
        "search_mode": self.search_mode,
    }


def _setstate(self, state):
    # FAISS reads the bytes as its own IndexFlat, of which we make ours.
    plain = faiss.deserialize_index(np.frombuffer(state["this"], np.uint8))
    self.__init__(plain)
    self.choice = swigfaiss_bits.FusedChoice(**state["choice"])
    self.search_mode = state["search_mode"]
