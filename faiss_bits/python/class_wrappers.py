"""Gives our SWIG classes the Python manners of FAISS's: numpy arrays through
FAISS's own wrappers, torch tensors through torch_methods.py, resources that stay
alive. fused_wrappers.py adds what the classes of the CPU part have of their own."""

import functools
import inspect
import re

import faiss
import numpy as np
from faiss import class_wrappers as faiss_wrappers

from . import torch_methods
from .arrays import float32_array, float32_number, int64_number
from .devices import is_provider, require_gpu
from .index_arguments import check_search, check_vectors_of, checked, ids_array
from .range_methods import wrap_ivf_range_search, wrap_range_search
from .ranges import number
from .search_modes import by_name
from .torch_interop import check_tensor, has_tensor, is_tensor, pointer
from .torch_methods import TORCH_METHODS, check_vectors, ordered


def wrap_gpu_index(the_class):
    """Wraps one of our GPU flat index classes; base classes first."""
    wrap_index(the_class)
    if not hasattr(the_class.range_search, "_takes_limit"):
        wrap_range_search(the_class)
    guard_constructor(the_class)
    if "search_mode" in vars(the_class):
        the_class.search_mode = by_name(the_class.search_mode)
        the_class.plan_c = the_class.plan
        the_class.plan = _plan


def wrap_gpu_ivf_index(the_class):
    """Wraps one of our GPU classes of inverted lists."""
    take_members_of_base(the_class)
    wrap_index(the_class)
    take_ids_of_tensors(the_class)
    the_class.update_vectors = update_vectors
    wrap_ivf_range_search(the_class)
    guard_constructor(the_class, _ivf_constructor_doc(the_class.__name__))


def take_members_of_base(the_class):
    """What our classes have from a template in C++ becomes their own, where help()
    and the reference show it."""
    for name, member in vars(the_class.__mro__[1]).items():
        if not name.startswith("_") and name not in vars(the_class):
            setattr(the_class, name, member)


def take_ids_of_tensors(the_class):
    """add_with_ids takes tensors too; for classes that keep ids."""
    the_class.add_with_ids = _either(
        the_class.add_with_ids, torch_methods.add_with_ids
    )


def wrap_index(the_class):
    """Wraps the methods of one of our index classes; base classes first."""
    # The proxies declare overridden methods anew, with C++ signatures. Inherited
    # ones may be those of faiss.contrib.torch_utils, which FAISS's wrappers take
    # for C++.
    numpy_methods = _numpy_methods(the_class)
    for name, numpy_method in numpy_methods.items():
        setattr(the_class, name, numpy_method)
    faiss_wrappers.handle_Index(the_class)
    base = the_class.__mro__[1]
    for name, torch_method in TORCH_METHODS.items():
        numpy_method = getattr(the_class, name)
        if numpy_method is getattr(base, name) and hasattr(
            numpy_method, "_takes_torch"
        ):
            continue  # inherited, with torch
        setattr(the_class, name, _either(numpy_method, torch_method))
    if not hasattr(the_class.range_search, "_checks_numpy"):
        the_class.range_search = _checked(the_class.range_search)
    the_class.search.__doc__ = _search_doc(the_class)
    for name, numpy_method in numpy_methods.items():
        if getattr(the_class, name) is numpy_method:
            delattr(the_class, name)  # inherited as it was, with torch
    for name in _CHECKED_HERE:
        method = getattr(the_class, name, None)  # not every FAISS has all
        if method and not hasattr(method, "_checks_arguments"):
            setattr(the_class, name, _checking(the_class, name))


_CHECKED_HERE = (
    "add_with_ids",
    "remove_ids",
    "sa_encode",
    "sa_decode",
    "add_sa_codes",
)
# Of those that FAISS has no text for.
_DOCS = {
    "sa_encode": """Vectors as codes of sa_code_size() bytes each.

    Parameters
    ----------
    x : array_like
        Vectors, shape (n, d), float32
    codes : array_like, optional
        Array for the result, shape (n, sa_code_size()), uint8

    Returns
    -------
    codes : array_like
        shape (n, sa_code_size()), uint8
    """,
    "sa_decode": """The vectors of codes that sa_encode() returns.

    Parameters
    ----------
    codes : array_like
        shape (n, sa_code_size()), uint8
    x : array_like, optional
        Array for the result, shape (n, d), float32

    Returns
    -------
    x : array_like
        Vectors, shape (n, d), float32
    """,
    "add_sa_codes": """Adds vectors by their codes, as sa_encode() returns them.

    Parameters
    ----------
    codes : array_like
        shape (n, sa_code_size()), uint8
    ids : array_like, optional
        Ids of the vectors, shape (n,), int64; None: from ntotal on
    """,
}


def _checking(the_class, name):
    """A method of ids or codes, with its arguments checked unless they are
    tensors. One that is inherited is looked for at every call, as
    faiss.contrib.torch_utils replaces it."""
    own, model = vars(the_class).get(name), getattr(the_class, name)

    @functools.wraps(model)
    def replacement(self, *args, **kwargs):
        if not has_tensor(args, kwargs):
            args, kwargs = checked(name, self, args, kwargs)
        method = own or getattr(super(the_class, the_class), name)
        return method(self, *args, **kwargs)

    replacement.__name__ = "replacement_" + name
    replacement.__doc__ = model.__doc__ or _DOCS.get(name)
    replacement._checks_arguments = True
    return replacement


def _numpy_methods(the_class):
    """Of the methods that faiss.contrib.torch_utils has replaced in base classes:
    those for numpy arrays, by name."""
    return {
        name: getattr(the_class, name + "_numpy")
        for name in dir(the_class)
        if getattr(getattr(the_class, name), "__name__", "")
        == "torch_replacement_" + name
    }


def guard_constructor(the_class, doc=None):
    """The constructor of a class on the GPU: an exception where there is none, and
    resources that live as long as the index."""
    original_init = the_class.__init__

    def __init__(self, *args):
        require_gpu(the_class.__name__)
        for arg in args:
            refuse_lost_options(arg, "config", "GpuIndexBitsFlatConfig")
        original_init(self, *args)
        # A resources object or a quantizer belongs to Python; the index needs
        # it. An index that it is a copy of it does not.
        self.referenced_objects = [
            a
            for i, a in enumerate(args)
            if hasattr(a, "getDefaultStream")
            or is_provider(a)
            or (i == 1 and len(args) > 3 and isinstance(a, faiss.Index))
        ]

    __init__.__doc__ = doc or _constructor_doc(the_class.__name__)
    the_class.__init__ = __init__


def refuse_lost_options(options, name, instead):
    """Raises if an option of ours was set on an object of FAISS's: it has no
    such field, but Python lets one set it, and nobody would read it."""
    for field in ("useBFloat16", "keepSearchImage"):
        if field in getattr(options, "__dict__", {}):
            raise TypeError(
                f"{name} is a {type(options).__name__}, which has no {field}; "
                f"pass {instead}"
            )


def check_index(index):
    if not isinstance(index, faiss.Index):
        raise TypeError(
            f"index is a {type(index).__name__}, expected a faiss.Index"
        )


def update_vectors(self, keys, x):
    """Replaces the vectors of some ids: the old ones are removed, and the new
    ones added to the lists that are nearest to them. Not with INDICES_IVF, which
    keeps no ids.

    Parameters
    ----------
    keys : array_like or tensor
        (n,) int64: ids that are in the index, each once
    x : array_like or tensor
        (n, d) float32, on the device of keys

    Raises
    ------
    RuntimeError
        Naming an id that is in no list, there twice, or that of several
        vectors; for a vector that is not finite; out of memory. All vectors are
        as they were then
    """
    if has_tensor((keys, x), {}):
        n = check_vectors(self, x)
        check_tensor(keys, "keys", (n,), ("int64",), x.device)
        with ordered(self, x):
            self.update_vectors_c(n, pointer(keys), pointer(x))
        return
    x = float32_array(x, "x")
    check_vectors_of(self, x)
    keys = ids_array(keys, "keys", len(x))
    self.update_vectors_c(len(x), faiss.swig_ptr(keys), faiss.swig_ptr(x))


def _plan(self, nq, k, params=None, on_device=False):
    """What search() of nq queries would do on this index now; nothing runs.

    Parameters
    ----------
    nq, k : int
        Numbers of queries and of neighbours
    params : faiss.SearchParameters, optional
        As for search(). A selector of a class of your own is asked for every id
    on_device : bool, optional
        Queries and results are tensors on the GPU; False: numpy arrays, which
        go through the GPU in pages

    Returns
    -------
    plan : GpuSearchPlan
        method, pages, queriesPerPage, tileQueries, tileVectors, candidates,
        selection, searchImage, scratchBytes, expectedMs (copies from and to the
        host are not in it) and details; str(plan) is one line
    """
    return self.plan_c(
        int64_number(nq, "nq", 0), int64_number(k, "k", 1), params, not on_device
    )


def _constructor_doc(name):
    metric = "" if name.endswith(("L2", "IP")) else ", metric"
    return f"""{name}(res, d{metric}[, config])
        An empty index for vectors of d dimensions.
    {name}(res, cpu_index[, config])
        A copy of a faiss.IndexFlat.

    res     faiss.StandardGpuResources, or the getResources() of an index
    config  GpuIndexBitsFlatConfig or faiss.GpuIndexFlatConfig: device,
            useFloat16, memorySpace; of ours useBFloat16, keepSearchImage

    Raises RuntimeError where there is no GPU, or naming a bad argument.
    """


# Behind nlist, and what they are.
_IVF_ARGUMENTS = {
    "GpuIndexBitsIVFFlat": ("[, metric[, config]]", ""),
    "GpuIndexBitsIVFPQ": (
        ", M, nbits[, metric[, config]]",
        """
    M       int, parts of a vector: it divides d
    nbits   int, bits of a part: 8, or with config.interleavedLayout 4, 5, 6, 8""",
    ),
    "GpuIndexBitsIVFScalarQuantizer": (
        ", qtype[, metric[, by_residual[, config]]]",
        """
    qtype   faiss.ScalarQuantizer.QT_8bit, QT_8bit_uniform, QT_8bit_direct,
            QT_4bit, QT_4bit_uniform, QT_6bit or QT_fp16
    by_residual  bool, codes of vectors less their centroids; True""",
    ),
}


def _ivf_constructor_doc(name):
    arguments, meaning = _IVF_ARGUMENTS[name]
    faiss_name = name.replace("GpuIndexBits", "GpuIndex")
    return f"""{name}(res, d, nlist{arguments})
        An empty index for vectors of d dimensions in nlist lists, to be
        trained.
    {name}(res, quantizer, d, nlist{arguments})
        The same with a quantizer of your own, on the CPU or on the same GPU.
    {name}(res, cpu_index[, config])
        A copy of a faiss.{faiss_name.replace("Gpu", "")}.

    res     faiss.StandardGpuResources, or the getResources() of an index{meaning}
    metric  faiss.METRIC_L2 (default) or faiss.METRIC_INNER_PRODUCT
    config  faiss.{faiss_name}Config

    Raises RuntimeError where there is no GPU, or naming a bad argument.
    """


# What FAISS's text says of the distances where k are not found; releases break the
# lines elsewhere.
_SHORT_RESULTS = re.compile(
    r"When not enough results are found the label is set to \+Inf or -Inf\.".replace(
        " ", r"\s+"
    )
)


def _short_results(found):
    """What they are, with the line break of what was found."""
    newline = (re.search(r"\n\s*", found[0]) or [" "])[0]
    return (
        f"Where fewer than k{newline}are found the largest float32, for "
        "similarities the smallest."
    )


def _search_doc(the_class):
    """FAISS's text on arguments, then what the header promises."""
    promise = getattr(getattr(the_class, "search_c", None), "__doc__", "") or ""
    own = _SHORT_RESULTS.sub(_short_results, the_class.search.__doc__ or "")
    if promise.strip() in own:
        return own
    own, promise = inspect.cleandoc(own), inspect.cleandoc(promise)
    return f"{own}\n\nNotes\n-----\n{promise}\n"


def _either(numpy_method, torch_method):
    """The numpy method, unless an argument is a torch tensor."""

    name = numpy_method.__name__.replace("replacement_", "")

    @functools.wraps(numpy_method)
    def replacement(self, *args, **kwargs):
        # Most calls have it first.
        if (args and is_tensor(args[0])) or has_tensor(args, kwargs):
            return torch_method(self, *args, **kwargs)
        args, kwargs = checked(name, self, args, kwargs)
        return numpy_method(self, *args, **kwargs)

    # FAISS's replace_method() goes by the name, which wraps() has kept.
    replacement._takes_torch = True
    return replacement


def _checked(numpy_method):
    """A method that takes vectors, but no tensors."""

    @functools.wraps(numpy_method)
    def replacement(self, x, thresh, *, params=None, **kwargs):
        if is_tensor(x):
            raise TypeError("x is a torch tensor; pass x.numpy()")
        check_search(self, x, params=params)
        thresh = float32_number(number(thresh, "thresh"), "thresh")
        return numpy_method(self, x, thresh, params=params, **kwargs)

    replacement._checks_numpy = True
    return replacement
