"""One index, several threads: each search on resources of its own."""

import gc
import threading
import weakref

import faiss
import numpy as np
import pytest
from conftest import index_of, make

import faiss_bits

pytestmark = pytest.mark.skipif(
    not hasattr(faiss_bits, "GpuIndexBitsFlat"),
    reason="this build holds the CPU part only",
)


def params_of(*args, **kwargs):
    return faiss_bits.SearchParametersBitsFlat(*args, **kwargs)


def small_resources():
    res = faiss.StandardGpuResources()
    res.setTempMemory(256 << 20)
    return res


# ---- the parameters, which need no GPU ----------------------------------------


def test_is_a_kind_of_search_parameters():
    assert issubclass(faiss_bits.SearchParametersBitsFlat, faiss.SearchParameters)
    empty = params_of()
    assert empty.sel is None and empty.resources is None


def test_resources_of_a_provider_stay_alive():
    params = params_of(resources=faiss.StandardGpuResources())
    gc.collect()
    assert isinstance(params.resources, faiss.GpuResources)
    again = params_of(resources=params.resources)
    again.resources = None
    assert again.resources is None
    again.resources = faiss.StandardGpuResources()
    assert isinstance(again.resources, faiss.GpuResources)


def test_keeps_its_selector_alive_and_lets_it_go():
    chosen = faiss.IDSelectorRange(3, 5)
    alive = weakref.ref(chosen)
    params = params_of(sel=chosen)
    assert chosen.thisown
    del chosen
    gc.collect()
    assert alive() is not None and params.sel.is_member(3)
    params.sel = faiss.IDSelectorRange(6, 9)
    gc.collect()
    assert alive() is None and params.sel.is_member(8)
    params.sel = None
    assert params.sel is None


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"sel": [1, 2]}, "sel is a list"),
        ({"resources": 0}, "resources is a int"),
        ({"resources": "gpu"}, "resources is a str"),
        ({"nprobe": 3}, "nprobe"),
    ],
)
def test_errors_name_the_argument(arguments, words):
    with pytest.raises(TypeError, match=words):
        params_of(**arguments)


def test_is_not_for_the_cpu():
    xb = make("normal", 20, 4, 1)
    with pytest.raises(RuntimeError, match="SearchParametersBitsFlat"):
        index_of(xb).search(xb, 1, params=params_of())


# ---- searches -----------------------------------------------------------------


def at_once(calls):
    """Runs the calls in threads of their own, at the same time."""
    start, errors = threading.Barrier(len(calls)), []

    def run(call):
        start.wait()
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def same(found, expected):
    return all(
        np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(found, expected)
    )


@pytest.mark.gpu
@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_Canberra])
def test_numpy_arrays(res, metric):
    xb = np.abs(make("normal", 50_000, 32, 1))
    alone = faiss_bits.GpuIndexBitsFlat(res, 32, metric)
    alone.add(xb)
    resources = [small_resources() for _ in range(6)]
    for round in range(3):
        index = faiss_bits.GpuIndexBitsFlat(resources[0], 32, metric)
        index.add(xb)

        def searches(number):
            params = params_of(resources=resources[number]) if number else None
            queries = [np.abs(make("normal", q, 32, 10 * number + q))
                       for q in (1, 5, 200)]
            right = [alone.search(x, 20) for x in queries]

            def call():
                for _ in range(5):
                    for x, expected in zip(queries, right):
                        assert same(index.search(x, 20, params=params), expected)
                        found = index.search_and_reconstruct(x, 20, params=params)
                        assert same(found[:2], expected)
                        assert (found[2] == xb[found[1]]).all()

            return call

        at_once([searches(number) for number in range(6)])


@pytest.mark.gpu
def test_selectors(res):
    xb, xq = make("normal", 9000, 16, 1), make("normal", 30, 16, 2)
    index = faiss_bits.GpuIndexBitsFlatL2(res, 16)
    index.add(xb)
    odd = faiss.IDSelectorBatch(np.arange(1, 9000, 2))
    expected = index.search(xq, 5, params=faiss.SearchParameters(sel=odd))
    resources = [small_resources() for _ in range(4)]

    def call(number):
        params = params_of(sel=odd, resources=resources[number])
        for _ in range(10):
            assert same(index.search(xq, 5, params=params), expected)

    at_once([lambda n=n: call(n) for n in range(4)])
    plan = index.plan(30, 5, params=params_of(sel=odd, resources=resources[0]))
    assert plan.method != "none"


@pytest.mark.gpu
def test_tensors_on_streams_of_their_own(torch, res):
    xb = make("normal", 50_000, 32, 1)
    alone = faiss_bits.GpuIndexBitsFlatL2(res, 32)
    alone.add(xb)
    queries = [torch.from_numpy(make("normal", 300, 32, s)).cuda() for s in range(6)]
    right = [alone.search(x, 20) for x in queries]
    torch.cuda.synchronize()
    resources = [small_resources() for _ in range(6)]
    index = faiss_bits.GpuIndexBitsFlatL2(resources[0], 32)
    index.add(xb)

    def call(number):
        params = params_of(resources=resources[number]) if number else None
        stream = torch.cuda.Stream()
        x = torch.zeros_like(queries[number])
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            x.copy_(queries[number])
            found = [index.search(x, 20, params=params) for _ in range(20)]
            D, I, R = index.search_and_reconstruct(x, 20, params=params)
            x.fill_(float("nan"))  # after the searches, in stream order
        stream.synchronize()
        for pair in [*found, (D, I)]:
            assert torch.equal(pair[0], right[number][0])
            assert torch.equal(pair[1], right[number][1])
        assert (R.cpu().numpy() == xb[I.cpu().numpy()]).all()

    at_once([lambda n=n: call(n) for n in range(6)])


@pytest.mark.gpu
def test_a_search_lets_other_threads_run(res):
    """Python goes on while a search computes: the GIL is released."""
    xb, xq = make("normal", 400_000, 128, 1), make("normal", 20_000, 128, 2)
    index = faiss_bits.GpuIndexBitsFlatL2(res, 128)
    index.add(xb)
    index.search_mode = "plain"
    params = params_of(resources=small_resources())
    index.search(xq[:100], 10, params=params)
    done, steps = threading.Event(), 0

    def search():
        index.search(xq, 10, params=params)
        done.set()

    thread = threading.Thread(target=search)
    thread.start()
    while not done.is_set():
        steps += 1
    thread.join()
    assert steps > 1000


@pytest.mark.gpu
def test_captured_on_resources_of_its_own(torch):
    xb = make("normal", 70_000, 32, 1)
    index = faiss_bits.GpuIndexBitsFlatL2(small_resources(), 32)
    index.add(xb)
    x = torch.from_numpy(make("normal", 100, 32, 2)).cuda()
    params = params_of(resources=small_resources())
    D = torch.empty((100, 10), device="cuda")
    I = torch.empty((100, 10), dtype=torch.int64, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            index.search(x, 10, D=D, I=I, params=params)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        index.search(x, 10, D=D, I=I, params=params)
    x.copy_(torch.from_numpy(make("normal", 100, 32, 3)).cuda())
    D.fill_(-7)
    graph.replay()
    torch.cuda.synchronize()
    D2, I2 = index.search(x, 10)
    assert torch.equal(D, D2) and torch.equal(I, I2)
