"""torch tensors in and out, on torch's current stream."""

import faiss
import numpy as np
import oracle
import pytest
from conftest import METRICS, make

import faiss_bits

pytestmark = pytest.mark.gpu
IP = faiss.METRIC_INNER_PRODUCT


@pytest.fixture
def index(res, torch):
    index = faiss_bits.GpuIndexBitsFlatL2(res, 8)
    index.add(torch.from_numpy(make("normal", 500, 8, 1)).cuda())
    return index


XB = make("normal", 500, 8, 1)
XQ = make("normal", 20, 8, 2)


@pytest.mark.parametrize("where", ["cuda:0", "cpu"])
def test_search(torch, index, where):
    xq = torch.from_numpy(XQ).to(where)
    D, I = index.search(xq, 7)
    for out, dtype in ((D, torch.float32), (I, torch.int64)):
        assert out.device == xq.device and out.dtype == dtype
    oracle.check_knn(XQ, XB, 7, D.cpu().numpy(), I.cpu().numpy())
    D2, I2 = torch.zeros_like(D), torch.zeros_like(I)
    out = index.search(xq, 7, D=D2, I=I2)
    assert out[0] is D2 and out[1] is I2
    assert torch.equal(D, D2) and torch.equal(I, I2)
    assert torch.equal(index.assign(xq, 7), I)


def test_reconstruct(torch, index):
    xb = torch.from_numpy(XB).cuda()
    x = torch.empty(8, device="cuda")
    assert torch.equal(index.reconstruct(3, x=x), xb[3])
    x = torch.empty((10, 8), device="cuda")
    assert torch.equal(index.reconstruct_n(5, 10, x=x), xb[5:15])
    keys = torch.tensor([4, 400, 0], device="cuda")
    assert torch.equal(index.reconstruct_batch(keys), xb[keys])
    _, I, R = index.search_and_reconstruct(xb[:3], 2)
    assert torch.equal(R, xb[I])


def test_results_follow_the_current_stream(torch, index):
    """The queries are written on a stream of torch's that is kept busy; a
    search on any other stream would read what was there before."""
    xq = torch.zeros(XQ.shape, device="cuda")
    right, xb = torch.from_numpy(XQ).cuda(), torch.from_numpy(XB).cuda()
    faiss_bits.knn(xq, xb, 7)  # make what is made on first use
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    before = int(
        faiss.cast_cudastream_t_to_integer(index.getResources().getDefaultStream(0))
    )
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        xq.copy_(right)
        D, I = index.search(xq, 7)
        D2, I2 = faiss_bits.knn(xq, xb, 7)
        xq.fill_(float("nan"))  # after the searches, in stream order
    stream.synchronize()
    oracle.check_knn(XQ, XB, 7, D.cpu().numpy(), I.cpu().numpy())
    oracle.check_knn(XQ, XB, 7, D2.cpu().numpy(), I2.cpu().numpy())
    after = faiss.cast_cudastream_t_to_integer(
        index.getResources().getDefaultStream(0)
    )
    assert int(after) == before


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("half", [False, True])
def test_knn(torch, metric, half):
    xq, xb = make("ties", 30, 16, 1), make("ties", 700, 16, 2)
    q, b = torch.from_numpy(xq).cuda(), torch.from_numpy(xb).cuda()
    if half:
        q, b = q.half(), b.half()  # exact: small whole numbers
    D, I = faiss_bits.knn(q, b, 9, metric=metric)
    assert D.device == q.device and D.dtype == torch.float32
    oracle.check_knn(xq, xb, 9, D.cpu().numpy(), I.cpu().numpy(), metric == IP)
    by_column = b.t().contiguous().t()
    norms = b.float().square().sum(1)
    of_doubles = {"vectorNorms": norms.double()}
    for more in ({}, {"vectorNorms": norms}, of_doubles, {"device": 0}):
        D2, I2 = faiss_bits.knn(q, by_column, 9, metric=metric, **more)
        assert torch.equal(D, D2) and torch.equal(I, I2)


def test_select_k(torch):
    keys = torch.randn((5, 300), device="cuda")
    out, ids = faiss_bits.select_k(keys, 11, largest=True)
    expected = keys.topk(11)
    assert torch.equal(out, expected.values) and torch.equal(ids, expected.indices)
    out, ids = faiss_bits.select_k(keys.half(), 3)
    assert out.dtype == torch.float16


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("cols, k", [(1, 1), (37, 5), (1000, 10), (5000, 3000)])
def test_select_k_of_rows_with_gaps(torch, dtype, cols, k):
    """A slice of columns, where it lies; ids likewise."""
    wide = torch.randn((9, cols + 13), device="cuda").to(getattr(torch, dtype))
    keys = wide[2:8, 5 : 5 + cols]
    numbers = torch.randperm(9 * (cols + 20), device="cuda").view(9, cols + 20)
    ids = numbers[2:8, 11 : 11 + cols]
    out, columns = faiss_bits.select_k(keys, k, largest=True)
    out2, columns2 = faiss_bits.select_k(keys.contiguous(), k, largest=True)
    assert torch.equal(out, out2) and torch.equal(columns, columns2)
    out3, chosen = faiss_bits.select_k(keys, k, largest=True, ids=ids)
    assert torch.equal(out, out3)
    there = columns >= 0
    assert torch.equal(chosen[there], ids.gather(1, columns.clamp(min=0))[there])
    mixed = faiss_bits.select_k(keys.contiguous(), k, largest=True, ids=ids)
    assert torch.equal(mixed[1], chosen)


def test_knn_of_types_that_differ(torch):
    q, b = torch.from_numpy(XQ).cuda(), torch.from_numpy(XB).cuda().half()
    D, I = faiss_bits.knn(q, b, 5)
    D2, I2 = faiss_bits.knn(q, b.float(), 5)
    assert torch.equal(D, D2) and torch.equal(I, I2)
    whole = (b * 3).round().int()
    D, I = faiss_bits.knn(q, whole, 5)
    D2, I2 = faiss_bits.knn(q, whole.float(), 5)
    assert torch.equal(D, D2) and torch.equal(I, I2)


@pytest.mark.parametrize("n, d, q, k", [
    (1000, 128, 1, 10), (1000, 128, 16, 10), (70_000, 32, 300, 100),
    (5000, 16, 40, 3000), (300, 200, 64, 1),
])
@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_L1])
def test_search_in_a_graph(torch, n, d, q, k, metric):
    """Captured once, launched on other queries: the bits of plain calls."""
    res = faiss.StandardGpuResources()
    index = faiss_bits.GpuIndexBitsFlat(
        res, d, metric, faiss_bits.GpuIndexBitsFlatConfig()
    )
    index.add(make("normal", n, d, 1))
    queries = [torch.from_numpy(make("normal", q, d, s)).cuda() for s in (2, 3, 4)]
    x = queries[0].clone()
    D = torch.empty((q, k), device="cuda")
    I = torch.empty((q, k), dtype=torch.int64, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):  # what an index keeps is made by now
            index.search(x, k, D=D, I=I)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        index.search(x, k, D=D, I=I)
    for given in queries:
        x.copy_(given)
        D.fill_(-7)
        I.fill_(-7)
        graph.replay()
        torch.cuda.synchronize()
        got = D.clone(), I.clone()
        D2, I2 = index.search(given, k)
        assert torch.equal(got[0], D2) and torch.equal(got[1], I2)


def test_select_and_knn_in_a_graph(torch):
    res = faiss.StandardGpuResources()
    keys = torch.randn((64, 5000), device="cuda")
    q, b = torch.from_numpy(XQ).cuda(), torch.from_numpy(XB).cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        faiss_bits.select_k(keys, 100, res=res)
        faiss_bits.knn(q, b, 5, res=res)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        out, ids = faiss_bits.select_k(keys, 100, res=res)
        D, I = faiss_bits.knn(q, b, 5, res=res)
    for seed in range(3):
        torch.manual_seed(seed)
        keys.copy_(torch.randn_like(keys))
        q.copy_(torch.randn_like(q))
        graph.replay()
        torch.cuda.synchronize()
        right = faiss_bits.select_k(keys, 100), faiss_bits.knn(q, b, 5)
        assert torch.equal(out, right[0][0]) and torch.equal(ids, right[0][1])
        assert torch.equal(D, right[1][0]) and torch.equal(I, right[1][1])


def test_two_streams_in_turns(torch, index):
    """Calls on two streams share scratch; each comes after the one before."""
    streams = [torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()]
    xq = torch.from_numpy(make("normal", 2000, 8, 5)).cuda()
    right = index.search(xq, 50)
    torch.cuda.synchronize()
    results = []
    for i in range(60):
        with torch.cuda.stream(streams[i % 3]):
            results.append(index.search(xq, 50))
    torch.cuda.synchronize()
    for D, I in results:
        assert torch.equal(D, right[0]) and torch.equal(I, right[1])


def test_add_between_searches_of_another_stream(torch, res):
    """What is added on the resources' stream is found by the next call."""
    index = faiss_bits.GpuIndexBitsFlatL2(res, 8)
    stream = torch.cuda.Stream()
    for i in range(20):
        index.add(make("normal", 300, 8, 100 + i))
        last = torch.from_numpy(make("normal", 300, 8, 100 + i)[-1:]).cuda()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            D, I = index.search(last, 1)
        stream.synchronize()
        assert I.item() == 300 * (i + 1) - 1 and D.item() == 0


def test_threads_with_resources_of_their_own(torch):
    """One thread, one resources object, one index: at the same time."""
    import threading

    xb, xq = make("normal", 20_000, 32, 1), make("normal", 500, 32, 2)
    right = faiss_bits.knn(xq, xb, 20, backend="cpu")
    wrong = []

    def work():
        res = faiss.StandardGpuResources()
        index = faiss_bits.GpuIndexBitsFlatL2(res, 32)
        index.add(xb)
        x = torch.from_numpy(xq).cuda()
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(30):
                D, I = index.search(x, 20)
                if not (np.array_equal(D.cpu().numpy(), right[0])
                        and np.array_equal(I.cpu().numpy(), right[1])):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_name_the_argument(torch, index):
    xq = torch.from_numpy(XQ).cuda()
    for call, error, words in (
        (lambda: index.search(xq.double(), 1), TypeError, "x is float64"),
        (lambda: index.search(xq[:, :4], 1), ValueError, r"x has shape \(20, 4\)"),
        (lambda: index.search(xq.t().contiguous().t(), 1), ValueError, "x is not con"),
        (lambda: index.search(xq, 0), ValueError, "k = 0"),
        (lambda: index.search(xq, 1, D=np.zeros((20, 1))), TypeError, "D is a ndarray"),
        (lambda: index.search(xq, 1, D=torch.zeros(20, 1)), ValueError, "D is on cpu"),
        (lambda: faiss_bits.knn(xq, XB, 1), TypeError, "xq and xb"),
        (lambda: faiss_bits.knn(xq, xq.cpu(), 1), ValueError, "xb is on cpu"),
        (lambda: faiss_bits.knn(xq[:, ::2], xq, 1), ValueError, "xq is not con"),
        (lambda: faiss_bits.select_k(xq.t(), 1), ValueError, "keys has strides"),
        (lambda: faiss_bits.select_k(xq[:, ::2], 1), ValueError, "keys has strides"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_wrong_device(torch, index):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    with pytest.raises(ValueError, match="x is on cuda:1"):
        index.search(torch.zeros((1, 8), device="cuda:1"), 1)
