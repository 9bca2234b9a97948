"""faiss_bits.Kmeans against faiss.Kmeans and float64; options, arguments."""

import faiss
import numpy as np
import pytest

import faiss_bits

OPTIONS = [
    {},
    {"niter": 0},
    {"niter": 3, "nredo": 3},
    {"spherical": True},
    {"int_centroids": True},
    {"seed": 7, "max_points_per_centroid": 40},
    {"update_index": True},
]
WHERE = [
    False,
    pytest.param(True, marks=pytest.mark.gpu),
]


def clustered(n, d, k, seed=1):
    rng = np.random.default_rng(seed)
    centers = 10 * rng.normal(size=(k, d))
    x = centers[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    return np.ascontiguousarray(x, np.float32)


def expect_alike(ours, theirs):
    """Iteration by iteration; FAISS adds up in float32."""
    assert len(ours.obj) == len(theirs.obj) == len(ours.iteration_stats)
    np.testing.assert_allclose(ours.obj, theirs.obj, rtol=1e-3)
    assert ours.centroids.shape == theirs.centroids.shape
    assert ours.centroids.dtype == np.float32
    for a, b in zip(ours.iteration_stats, theirs.iteration_stats):
        assert a.keys() == b.keys()
        assert a["nsplit"] == b["nsplit"]
        assert type(a["nsplit"]) is int
    size = np.linalg.norm(theirs.centroids)
    assert np.linalg.norm(ours.centroids - theirs.centroids) < 1e-2 * size


@pytest.mark.parametrize("gpu", WHERE)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_goes_where_faiss_goes(gpu, options):
    options = {"niter": 6, **options}
    x = clustered(2000, 12, 15)
    if "int_centroids" in options:
        # Two centroids of one cluster that round to the same are nearest both,
        # and FAISS's BLAS decides which.
        x *= 1000
    ours = faiss_bits.Kmeans(12, 15, gpu=gpu, **options)
    theirs = faiss.Kmeans(12, 15, **options)
    objective = ours.train(x)
    theirs.train(x)
    expect_alike(ours, theirs)
    assert objective == (ours.obj[-1] if len(ours.obj) else 0)
    assert (ours.d, ours.k, ours.gpu) == (12, 15, int(gpu))


@pytest.mark.parametrize("no", [np.False_, 0])
def test_other_words_for_no_gpu(no):
    kmeans = faiss_bits.Kmeans(4, 5, gpu=no)
    kmeans.train(clustered(200, 4, 5))
    assert kmeans.gpu == 0


@pytest.mark.parametrize("gpu", WHERE)
def test_initial_centroids_are_those_of_faiss(gpu):
    x = clustered(3000, 5, 8)
    for options in ({}, {"max_points_per_centroid": 60}, {"seed": 99}):
        ours = faiss_bits.Kmeans(5, 8, gpu=gpu, niter=0, **options)
        theirs = faiss.Kmeans(5, 8, niter=0, **options)
        ours.train(x)
        theirs.train(x)
        np.testing.assert_array_equal(ours.centroids, theirs.centroids)


@pytest.mark.parametrize("gpu", WHERE)
@pytest.mark.parametrize("given", [1, 6, 10])
@pytest.mark.parametrize("frozen", [False, True])
def test_given_centroids_and_weights(gpu, given, frozen):
    x = clustered(1500, 7, 10)
    weights = np.random.default_rng(2).integers(0, 6, 1500).astype(np.float32)
    first = x[:given].copy()
    options = {"niter": 5, "frozen_centroids": frozen}
    ours = faiss_bits.Kmeans(7, 10, gpu=gpu, **options)
    theirs = faiss.Kmeans(7, 10, **options)
    ours.train(x, weights=weights, init_centroids=first)
    theirs.train(x, weights=weights, init_centroids=first)
    expect_alike(ours, theirs)
    if frozen:
        np.testing.assert_array_equal(ours.centroids[:given], first)


@pytest.mark.parametrize("gpu", WHERE)
@pytest.mark.parametrize("spherical", [False, True])
def test_assign_finds_the_nearest_centroid(gpu, spherical):
    x = clustered(900, 9, 11)
    kmeans = faiss_bits.Kmeans(9, 11, gpu=gpu, spherical=spherical, niter=4)
    with pytest.raises(RuntimeError, match="train"):
        kmeans.assign(x)
    kmeans.train(x)
    D, I = kmeans.assign(x)
    assert D.shape == I.shape == (900,)
    a, b = x.astype(np.float64), kmeans.centroids.astype(np.float64)
    keys = a @ b.T if spherical else -((a[:, None] - b[None]) ** 2).sum(2)
    np.testing.assert_array_equal(I, keys.argmax(1))
    np.testing.assert_allclose(D, np.abs(keys.max(1)), rtol=1e-5)
    # As in FAISS, centroids may be set by hand.
    kmeans.centroids = kmeans.centroids[::-1].copy()
    np.testing.assert_array_equal(kmeans.assign(x)[1], 10 - I)


@pytest.mark.parametrize("gpu", WHERE)
def test_reset_and_other_types_of_vectors(gpu):
    x = clustered(400, 4, 5)
    kmeans = faiss_bits.Kmeans(4, 5, gpu=gpu, niter=3)
    kmeans.train(x.astype(np.float64))
    first = kmeans.centroids
    kmeans.train(np.asfortranarray(x))
    np.testing.assert_array_equal(kmeans.centroids, first)
    kmeans.reset(3)
    assert kmeans.k == 3
    assert kmeans.centroids is kmeans.obj is kmeans.iteration_stats is None
    kmeans.train(x)
    assert kmeans.centroids.shape == (3, 4)
    kmeans.cp.niter = 1
    kmeans.train(x)
    assert len(kmeans.obj) == 1


@pytest.mark.parametrize("gpu", WHERE)
def test_bad_vectors_are_named(gpu):
    kmeans = faiss_bits.Kmeans(4, 5, gpu=gpu)
    x = clustered(400, 4, 5)
    with pytest.raises(ValueError, match="x has shape"):
        kmeans.train(x[:, :3])
    with pytest.raises(TypeError, match="x is None"):
        kmeans.train(None)
    with pytest.raises(ValueError, match=r"x has shape \(\)"):
        kmeans.train(3.0)
    with pytest.raises(ValueError, match="weights has shape"):
        kmeans.train(x, weights=np.ones(399))
    with pytest.raises(ValueError, match="init_centroids has shape"):
        kmeans.train(x, init_centroids=x[:2, :2])
    with pytest.raises(ValueError, match="init_centroids has 6 rows"):
        kmeans.train(x, init_centroids=x[:6])
    with pytest.raises(RuntimeError, match="n = 4 "):
        kmeans.train(x[:4])
    for bad in (np.nan, np.inf):
        y = x.copy()
        y[-1, -1] = bad
        with pytest.raises(RuntimeError, match="NaN"):
            kmeans.train(y)
    assert kmeans.centroids is None


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"foo": 1}, AttributeError, "foo"),
        ({"progressive_dim_steps": 3}, ValueError, "progressive_dim_steps"),
        ({"gpu": 2}, ValueError, "gpu = 2"),
        ({"gpu": -2}, ValueError, "gpu = -2"),
        ({"gpu": "yes"}, TypeError, "gpu"),
        ({"gpu": False, "device": 0}, ValueError, "device = 0"),
        ({"gpu": False, "res": object()}, ValueError, "res"),
        ({"gpu": False, "most_device_bytes": 100}, ValueError,
         "most_device_bytes = 100"),
        ({"niter": "many"}, TypeError, "niter = 'many'.* such as 25"),
        ({"seed": 2**40}, TypeError, "seed = 1099511627776"),
        ({"search_mode": "fast"}, ValueError, "search_mode = 'fast'"),
        ({"search_mode": "exact"}, ValueError, "search_mode = 'exact'"),
        ({"most_device_bytes": -1}, ValueError, "most_device_bytes"),
        ({"device": -2}, ValueError, "device"),
    ],
)
def test_bad_options_are_named(options, error, words):
    with pytest.raises(error, match=words):
        faiss_bits.Kmeans(4, 5, **options)
    with pytest.raises(ValueError, match="d = 0"):
        faiss_bits.Kmeans(0, 5)
    with pytest.raises(ValueError, match="k = 0"):
        faiss_bits.Kmeans(4, 0)


@pytest.mark.parametrize("gpu", WHERE)
@pytest.mark.parametrize(
    "options, train, error, words",
    [
        ({"niter": -1}, {}, RuntimeError, "niter = -1 is below 0"),
        ({"nredo": 0}, {}, RuntimeError, "nredo = 0 is below 1"),
        ({"max_points_per_centroid": 0}, {}, RuntimeError, "max_points_per"),
        ({"min_points_per_centroid": -1}, {}, RuntimeError, "min_points_per"),
        ({}, {"weights": np.full(300, np.nan)}, RuntimeError, "weights has NaN"),
        ({}, {"weights": np.full(300, np.inf)}, RuntimeError, "weights has NaN"),
        ({}, {"weights": np.zeros(300)}, ValueError, "weights is 0"),
        ({}, {"weights": np.arange(300) - 3}, ValueError, "weights has -3.0"),
        ({}, {"init_centroids": np.full((5, 4), np.nan)}, RuntimeError, "init_centr"),
        ({}, {"init_centroids": np.full((5, 4), np.inf)}, RuntimeError, "init_centr"),
    ],
)
def test_what_faiss_does_not_survive(gpu, options, train, error, words):
    """On some of these its clustering ends the process, on others it never ends."""
    x = clustered(300, 4, 5)
    kmeans = faiss_bits.Kmeans(4, 5, gpu=gpu)
    kmeans.train(x)
    before = kmeans.centroids.copy(), kmeans.index, kmeans.obj.copy()
    for name, value in options.items():
        setattr(kmeans.cp, name, value)
    with pytest.raises(error, match=words):
        kmeans.train(x, **train)
    np.testing.assert_array_equal(kmeans.centroids, before[0])
    np.testing.assert_array_equal(kmeans.obj, before[2])
    assert kmeans.index is before[1]


@pytest.mark.parametrize("gpu", WHERE)
@pytest.mark.parametrize("total", [1e-6, 1.0, 19.0])
def test_light_weights(gpu, total):
    """Their scale changes no centroid, also where clusters are empty."""
    x = np.repeat(clustered(5, 4, 5), 20, axis=0)  # 5 places for 10 clusters
    weights = np.random.default_rng(2).random(100)
    weights *= total / weights.sum()
    kmeans = faiss_bits.Kmeans(4, 10, niter=4, gpu=gpu)
    kmeans.train(x, weights=weights)
    assert max(s["nsplit"] for s in kmeans.iteration_stats) > 0
    assert kmeans.assign(x)[0].max() < 1e-2  # clusters lie 10 apart
    once = faiss_bits.Kmeans(4, 1, niter=1, gpu=gpu)
    once.train(x, weights=weights)
    expected = np.average(x.astype("f8"), axis=0, weights=weights)
    np.testing.assert_allclose(once.centroids[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["certified", "plain"])
@pytest.mark.parametrize("spherical", [False, True])
def test_vectors_beyond_float32(mode, spherical):
    signs = np.random.default_rng(0).choice([-1, 1], (300, 4))
    kmeans = faiss_bits.Kmeans(
        4, 5, gpu=False, search_mode=mode, spherical=spherical
    )
    for size in (3e38, 1e37, 1e25):
        x = clustered(300, 4, 5) / 40 * signs * size
        if size < 1e30 and mode == "certified" and not spherical:
            kmeans.train(x)
            assert np.isfinite(kmeans.centroids).all()
            continue
        with pytest.raises(RuntimeError, match="x has a component of size"):
            kmeans.train(x)


def test_options_of_the_cpu_alone():
    kmeans = faiss_bits.Kmeans(4, 5, decode_block_size=100)
    assert kmeans.gpu == 0
    kmeans.train(clustered(300, 4, 5))
    with pytest.raises((ValueError, RuntimeError), match="decode_block_size|GPU"):
        faiss_bits.Kmeans(4, 5, decode_block_size=100, gpu=True)


@pytest.mark.cpu
def test_says_that_a_gpu_is_missing():
    for options in ({"gpu": True}, {"gpu": 1}, {"gpu": -1}, {"device": 0}):
        with pytest.raises(RuntimeError, match="needs a GPU"):
            faiss_bits.Kmeans(4, 5, **options)
    assert faiss_bits.Kmeans(4, 5).gpu == 0


# ---- what is the GPU's alone --------------------------------------------------


@pytest.mark.gpu
def test_same_bits_wherever_the_vectors_lie(torch):
    x = clustered(5000, 16, 20)
    weights = np.random.default_rng(3).random(5000, np.float32)
    expected = None
    for most in (0, 1):
        kmeans = faiss_bits.Kmeans(16, 20, niter=5, most_device_bytes=most)
        for y, w in (
            (x, weights),
            (torch.from_numpy(x), torch.from_numpy(weights)),
            (torch.from_numpy(x).cuda(), torch.from_numpy(weights).cuda()),
        ):
            kmeans.train(y, weights=w)
            assert type(kmeans.centroids) is type(y)
            centroids = kmeans.centroids
            if y is not x:
                assert centroids.device == y.device
                centroids = centroids.cpu().numpy()
            expected = centroids if expected is None else expected
            np.testing.assert_array_equal(centroids, expected)
            D, I = kmeans.assign(y)
            assert type(D) is type(I) is type(y)


@pytest.mark.gpu
def test_tensors_of_other_kinds_are_refused(torch):
    kmeans = faiss_bits.Kmeans(4, 5)
    x = torch.from_numpy(clustered(300, 4, 5)).cuda()
    with pytest.raises(TypeError, match="x is float16"):
        kmeans.train(x.half())
    with pytest.raises(ValueError, match="not contiguous"):
        kmeans.train(x.t().contiguous().t())
    with pytest.raises(TypeError, match="x and weights"):
        kmeans.train(x, weights=np.ones(300, np.float32))
    with pytest.raises(ValueError, match="weights is on"):
        kmeans.train(x, weights=torch.ones(300))
    with pytest.raises(ValueError, match="gpu = False"):
        faiss_bits.Kmeans(4, 5, gpu=False).train(x)


@pytest.mark.gpu
def test_objective_of_faiss_on_the_gpu():
    x = np.random.default_rng(5).random((50000, 64), np.float32)
    ours = faiss_bits.Kmeans(64, 200, niter=8, gpu=True)
    theirs = faiss.Kmeans(64, 200, niter=8, gpu=True)
    assert ours.train(x) == pytest.approx(theirs.train(x), rel=1e-3)
