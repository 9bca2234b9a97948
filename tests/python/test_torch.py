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
    for more in ({}, {"vectorNorms": norms}, {"device": 0}):
        D2, I2 = faiss_bits.knn(q, by_column, 9, metric=metric, **more)
        assert torch.equal(D, D2) and torch.equal(I, I2)


def test_select_k(torch):
    keys = torch.randn((5, 300), device="cuda")
    out, ids = faiss_bits.select_k(keys, 11, largest=True)
    expected = keys.topk(11)
    assert torch.equal(out, expected.values) and torch.equal(ids, expected.indices)
    out, ids = faiss_bits.select_k(keys.half(), 3)
    assert out.dtype == torch.float16


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
        (lambda: faiss_bits.select_k(xq.t(), 1), ValueError, "keys is not con"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_wrong_device(torch, index):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    with pytest.raises(ValueError, match="x is on cuda:1"):
        index.search(torch.zeros((1, 8), device="cuda:1"), 1)
