"""What a selection would do, and what it shares with select_k."""

from . import _build_info
from .arrays import int64_number, neighbours, whole_number
from .compiled import swigfaiss_bits
from .devices import check_device, placed, require_gpu

KEY_TYPES = {
    "float32": swigfaiss_bits.DataType_Float32,
    "float16": swigfaiss_bits.DataType_Float16,
    "bfloat16": swigfaiss_bits.DataType_BFloat16,
}
ID_TYPES = {
    "int64": swigfaiss_bits.IdType_Int64,
    "int32": swigfaiss_bits.IdType_Int32,
}
_algorithms = {}  # those asked for, by name


def select_algorithm(name):
    """The number of an algorithm; ValueError that lists the names."""
    if not isinstance(name, str):
        raise TypeError(f"algorithm is a {type(name).__name__}, expected a name")
    number = _algorithms.get(name)
    if number is None:
        try:
            number = swigfaiss_bits.selectAlgorithmOf(name)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
        _algorithms[name] = number
    return number


def select_plan(
    rows,
    cols,
    k,
    dtype="float32",
    largest=False,
    sorted=True,
    algorithm="auto",
    device=-1,
    res=None,
    on_device=False,
):
    """What select_k would do with a matrix of this shape; nothing runs.

    Parameters
    ----------
    rows, cols : int
        Shape of the keys
    k, largest, sorted, algorithm, res
        As for select_k()
    dtype : str, optional
        Type of the keys, "float32", "float16" or "bfloat16"
    device : int or str, optional
        Number of the GPU; -1: the thread's current one; "h200": the GPU that
        the expected times were measured on, which need not be there
    on_device : bool, optional
        Keys and results are tensors on the GPU; False: numpy arrays, which go
        through the GPU in pages

    Returns
    -------
    plan : GpuSelectPlan
        algorithm, pages, rowsPerPage, rowsPerBatch, scratchBytes, expectedMs
        (of keys in random order; copies from and to the host are not in it) and
        details; str(plan) is one line

    Raises
    ------
    RuntimeError
        There is no GPU, and device is not "h200", for which a build with the
        GPU part is enough
    """
    for_h200 = device == "h200"
    if isinstance(device, str) and not for_h200:
        raise ValueError(f"device = {device!r} is neither a number nor 'h200'")
    if not (for_h200 and _build_info.HAS_GPU):
        require_gpu("select_plan")
    if dtype not in KEY_TYPES:
        raise ValueError(
            f"dtype = {dtype!r} is none of {', '.join(map(repr, KEY_TYPES))}"
        )
    params = swigfaiss_bits.GpuSelectParams()
    params.rows = int64_number(rows, "rows", 0)
    params.cols = int64_number(cols, "cols", 0)
    params.k = neighbours(k)
    params.keyType = KEY_TYPES[dtype]
    params.largest, params.sorted = bool(largest), bool(sorted)
    params.algorithm = select_algorithm(algorithm)
    if for_h200:
        return swigfaiss_bits.planSelectKForH200(params, not on_device)
    device = whole_number(device, "device", -1)
    if device >= 0:
        check_device(device)
    with placed(res, None, device) as owner:
        return swigfaiss_bits.planSelectK(owner, params, not on_device)
