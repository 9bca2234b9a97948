"""What works without a GPU works with one: where knn runs, and what it says.

Without a GPU the package is made to believe that there is one, and the call of
the GPU kernels is replaced; with one, the same tests run on it."""

import faiss
import numpy as np
import oracle
import pytest
from conftest import (
    CPU_METRICS,
    GPU_METRICS,
    METRICS,
    for_metric,
    make,
    missing_gpu,
)

import faiss_bits
from faiss_bits import backends, devices

XQ, XB = make("normal", 6, 9, 1), make("normal", 200, 9, 2)
CHOICE = faiss_bits.FusedChoice(variant="var1")
ONLY_ON_CPU = [
    ({}, "f8", "xq is float64", TypeError),
    ({"metric": faiss.METRIC_L1}, "f8", "xq is float64", TypeError),
    ({"choice": CHOICE}, "f4", "choice = FusedChoice", ValueError),
]


@pytest.fixture
def a_gpu(monkeypatch):
    """A machine with a GPU, as far as the package can see."""
    if missing_gpu():
        monkeypatch.setattr(devices, "get_num_gpus", lambda: 1)
        monkeypatch.setattr(devices._build_info, "HAS_GPU", True)


def test_no_backend_for_what_no_search_has(a_gpu):
    for dtype in ("flot32", "complex64", "bool", "U3", 3, object()):
        with pytest.raises(ValueError, match="dtype = "):
            faiss_bits.backend(dtype=dtype)
    for metric in ("L2", "nonsense", 77, None, [1], 1.5):
        with pytest.raises(ValueError, match="metric = "):
            faiss_bits.backend(metric)
        with pytest.raises(ValueError, match="metric = "):
            faiss_bits.knn(XQ, XB, 3, metric=metric)
    for dtype in ("float32", np.float32, np.dtype("f2"), ">f4", np.int64, "u1"):
        assert faiss_bits.backend(dtype=dtype) == "gpu"
    assert faiss_bits.backend(dtype=float) == "cpu"


@pytest.mark.parametrize("metric, argument, name", CPU_METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_metric_and_type(a_gpu, metric, argument, name, dtype):
    if dtype == "float32" and missing_gpu():
        pytest.skip("needs a GPU: kernels of its own")
    xq, xb = for_metric(name, XQ.astype(dtype), XB.astype(dtype))
    D, I = faiss_bits.knn(xq, xb, 7, metric=metric, metric_arg=argument)
    assert D.dtype == dtype
    oracle.check_knn(xq, xb, 7, D, I, metric=name, p=argument)


@pytest.mark.parametrize("change, dtype, word, error", ONLY_ON_CPU)
def test_auto_is_the_cpu_where_the_gpu_has_no_kernel(
    a_gpu, change, dtype, word, error
):
    xq, xb = XQ.astype(dtype), XB.astype(dtype)
    D, I = faiss_bits.knn(xq, xb, 7, **change)
    D2, I2 = faiss_bits.knn(xq, xb, 7, backend="cpu", **change)
    assert D.tobytes() == D2.tobytes() and I.tobytes() == I2.tobytes()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_cpu_by_name(a_gpu, metric, dtype):
    xq, xb = XQ.astype(dtype), XB.astype(dtype)
    D, I = faiss_bits.knn(xq, xb, 7, metric=metric, backend="cpu")
    oracle.check_knn(xq, xb, 7, D, I, metric == faiss.METRIC_INNER_PRODUCT)


@pytest.mark.parametrize("change, dtype, word, error", ONLY_ON_CPU)
@pytest.mark.parametrize(
    "asked, words",
    [
        ({"backend": "gpu"}, "backend = 'gpu' asks for the GPU"),
        ({"device": 0}, "device = 0 asks for the GPU"),
        ({"vectorNorms": np.zeros(200, "f4")}, "vectorNorms asks for the GPU"),
        ({"res": "any", "backend": "gpu"}, "res asks for the GPU"),
    ],
)
def test_asked_for_the_gpu_it_says_what_that_lacks(
    a_gpu, change, dtype, word, error, asked, words
):
    with pytest.raises(error) as caught:
        faiss_bits.knn(
            XQ.astype(dtype), XB.astype(dtype), 7, **change, **asked
        )
    assert str(caught.value).startswith(word) and words in str(caught.value)


def test_what_decides(a_gpu):
    for metric, _, _ in GPU_METRICS:
        for dtype in ("float32", "float16"):
            assert faiss_bits.backend(metric, dtype) == "gpu"
        assert faiss_bits.backend(metric, "float64") == "cpu"
    assert faiss_bits.backend() == "gpu"
    most = 2**31 - 1
    assert backends.why_not_gpu(faiss.METRIC_L2, "float32", most) is None
    problem = backends.why_not_gpu(faiss.METRIC_L2, "float32", most + 1)
    assert "xb has 2147483648 rows" in str(problem)


@pytest.mark.parametrize(
    "more, ran",
    [
        ({}, "gpu"),
        ({"backend": "gpu"}, "gpu"),
        ({"backend": "cpu"}, "cpu"),
        ({"choice": CHOICE}, "cpu"),
        ({"vectorNorms": np.square(XB).sum(1)}, "gpu"),
    ],
)
def test_where_it_runs(a_gpu, monkeypatch, more, ran):
    """Whichever kernels are called, they are those that were to be."""
    called = []

    def on_gpu(*args):
        called.append("gpu")
        raise RuntimeError("far enough")

    def on_cpu(*args):
        called.append("cpu")
        raise RuntimeError("far enough")

    monkeypatch.setattr(faiss_bits.functions, "_knn_on_gpu", on_gpu)
    monkeypatch.setattr(faiss_bits.functions.fused, "knn", on_cpu)
    with pytest.raises(RuntimeError, match="far enough"):
        faiss_bits.knn(XQ, XB, 7, **more)
    assert called == [ran]


@pytest.mark.parametrize("where", ["gpu", "cpu"])
def test_the_mode_gets_there(a_gpu, monkeypatch, where):
    modes = []

    def run(*args):
        modes.append(args[7] if where == "gpu" else args[0].mode)

    functions = faiss_bits.functions
    monkeypatch.setattr(functions, "_knn_on_gpu", run)
    monkeypatch.setattr(functions.fused, "_run", run)
    names = ("plain", "certified", "fast")
    for more in ({}, *({"search_mode": name} for name in names)):
        faiss_bits.knn(XQ, XB, 7, backend=where, **more)
    number = faiss_bits.swigfaiss_bits
    certified, plain = number.SearchMode_Certified, number.SearchMode_Plain
    fast = number.SearchMode_Fast
    assert modes == [certified, plain, certified, fast]
    assert len({certified, plain, fast}) == 3


@pytest.mark.parametrize("metric, argument, name", CPU_METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_modes_on_the_cpu(metric, argument, name, dtype):
    """Far from the origin, where the products of a plain search say little."""
    xq, xb = make("far", 40, 16, 1), make("far", 900, 16, 2)
    xq, xb = xq.astype(dtype), xb.astype(dtype)
    arguments = {"metric": metric, "metric_arg": argument, "backend": "cpu"}
    for mode in ("certified", "plain"):
        D, I = faiss_bits.knn(xq, xb, 10, search_mode=mode, **arguments)
        oracle.check_knn(xq, xb, 10, D, I, metric=name, p=argument)
        D2, I2 = faiss_bits.knn_subset(
            np.concatenate([xq, xb]),
            range(40),
            range(40, 940),
            10,
            metric=metric,
            metric_arg=argument,
            search_mode=mode,
        )
        if mode == "certified":
            assert (D == D2).all() and (I + 40 == I2).all()
    with pytest.raises(ValueError, match="search_mode = 'exact'"):
        faiss_bits.knn_subset(xb, None, None, 3, search_mode="exact")
    with pytest.raises(ValueError, match=r"x has shape \(\d+, 0\)"):
        faiss_bits.knn_subset(xb[:, :0], None, None, 3)


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(devices, "get_num_gpus", lambda: 0)
    assert faiss_bits.backend() == "cpu"
    D, I = faiss_bits.knn(XQ, XB, 7)
    D2, I2 = faiss_bits.knn(XQ, XB, 7, backend="cpu")
    assert D.tobytes() == D2.tobytes() and I.tobytes() == I2.tobytes()


# ---- on a GPU ----------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("metric, argument, name", CPU_METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", ["normal", "far"])
def test_certified_bits_of_both_backends(metric, argument, name, dtype, kind):
    xq, xb = for_metric(name, make(kind, 70, 19, 1), make(kind, 2000, 19, 2))
    xq, xb = xq.astype(dtype), xb.astype(dtype)
    arguments = {"metric": metric, "metric_arg": argument}
    for q in (1, 16, 70):
        D, I = faiss_bits.knn(xq[:q], xb, 30, backend="gpu", **arguments)
        D2, I2 = faiss_bits.knn(xq[:q], xb, 30, backend="cpu", **arguments)
        assert D.tobytes() == D2.tobytes() and (I == I2).all()
        plain, _ = faiss_bits.knn(
            xq[:q], xb, 30, backend="gpu", search_mode="plain", **arguments
        )
        slack = oracle.rounding(xq[:q], xb, name, argument).max()
        assert np.abs(plain.astype("f8") - D).max() <= 2 * slack


@pytest.mark.gpu
@pytest.mark.parametrize("metric", METRICS)
def test_both_backends_agree(metric):
    # Few values: distances are exact on both sides, and ties are many.
    xq, xb = make("ties", 40, 16, 1), make("ties", 700, 16, 2)
    D, I = faiss_bits.knn(xq, xb, 30, metric=metric, backend="gpu")
    D2, I2 = faiss_bits.knn(xq, xb, 30, metric=metric, backend="cpu")
    assert (D == D2).all() and (I == I2).all()


@pytest.mark.gpu
def test_tensors_on_a_gpu_stay_there(torch):
    q, b = torch.from_numpy(XQ).cuda(), torch.from_numpy(XB).cuda()
    assert faiss_bits.knn(q, b, 3, backend="gpu")[0].is_cuda
    for change, error, words in (
        ({"backend": "cpu"}, ValueError, "xq on cuda:0.*xq.cpu.*backend = 'cpu'"),
        ({"metric": 99}, ValueError, "metric = 99.*xq.cpu"),
        ({"choice": CHOICE}, ValueError, "choice.*xq.cpu"),
    ):
        with pytest.raises(error, match=words):
            faiss_bits.knn(q, b, 3, **change)
    with pytest.raises(TypeError, match="xq is float64.*xq.cpu"):
        faiss_bits.knn(q.double(), b.double(), 3)
    for metric, _, name in CPU_METRICS[2:4]:
        D, I = faiss_bits.knn(q.cpu(), b.cpu(), 3, metric=metric)
        assert not D.is_cuda
        oracle.check_knn(XQ, XB, 3, D.numpy(), I.numpy(), metric=name)


@pytest.mark.gpu
@pytest.mark.parametrize("metric, argument, name", GPU_METRICS)
@pytest.mark.parametrize("q", [1, 30, 150])
def test_every_metric_on_the_gpu(metric, argument, name, q):
    # No component below 0: what Jensen-Shannon and Jaccard are for.
    xq, xb = abs(make("normal", q, 12, 1)), abs(make("normal", 900, 12, 2))
    D, I = faiss_bits.knn(
        xq, xb, 20, metric=metric, metric_arg=argument, backend="gpu"
    )
    oracle.check_knn(xq, xb, 20, D, I, metric=name, p=argument)
