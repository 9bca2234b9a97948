#include <thread>

#include "tests/common/CapturedGraph.h"
#include "tests/dropin/DropinSearchHarness.h"

/// FAISS's whole searches on our kernels, with both kinds of ids.
namespace faiss_bits::test {
namespace {

class DropinSearch : public GpuTest {};

// Every path of our own kernels once, for compute-sanitizer
// (--gtest_filter=*Small*); those of the search have tests of their own.
class DropinSearchSmall : public GpuTest {};

TEST_F(DropinSearchSmall, EveryPath) {
    for (bool isL2 : {true, false}) {
        for (int64_t q : {2, 128}) {
            SearchCase c;
            c.isL2 = isL2;
            c.n = 8192;
            c.q = q;
            c.d = 8;
            expectSearches(c, Hard::Bytes);
            c.queriesRowMajor = false;
            c.vectorsRowMajor = false;
            expectSearches(c, Hard::Infinite);
        }
    }
}

// With fewer vectors, for that k, FAISS's own function runs: but for a small k
// of many queries.
TEST_F(DropinSearch, BothSidesOfTheLeastNumberOfVectors) {
    for (bool isL2 : {true, false}) {
        for (int64_t q : {16, 128}) {
            for (int k : {2, 10, 512, 513, 1000, 2048}) {
                SearchCase c;
                c.isL2 = isL2;
                c.q = q;
                // Too many components for all distances.
                c.d = q == 16 ? 2817 : 2050;
                c.k = k;
                c.n = std::max(8192, 16 * k);
                expectSearches(c, Hard::Bytes);
                --c.n;
                if (q == 128 && k <= 10) {
                    // Limits from strips need no sample.
                    expectSearches(c, Hard::Bytes);
                } else {
                    expectLeft(c);
                }
            }
        }
    }
}

/// Canonical distances of all pairs, whatever the number of queries.
TEST_F(DropinSearch, FewPairs) {
    for (bool isL2 : {true, false}) {
        for (int64_t q : {1, 16, 17, 50, 128}) {
            for (int k : {1, 10, 700}) {
                SearchCase c;
                c.isL2 = isL2;
                c.n = 1000;
                c.d = 20;
                c.q = q;
                c.k = k;
                expectSearches(c, Hard::Bytes);
            }
        }
    }
}

/// The nearest one of few vectors, where there is enough work.
TEST_F(DropinSearch, NearestOfFewVectors) {
    for (bool isL2 : {true, false}) {
        for (Hard kind : {Hard::Bytes, Hard::Offset, Hard::Infinite}) {
            SearchCase c;
            c.isL2 = isL2;
            c.n = 1000;
            c.d = 32;
            c.k = 1;
            c.q = 2100;
            expectSearches(c, kind);
            c.q = 2000; // so little work that all distances are computed
            expectSearches(c, kind);
            c.n = 63;
            c.d = 2100;
            expectLeft(c);
        }
    }
}

TEST_F(DropinSearch, BothSidesOfTheNumbersOfQueries) {
    for (bool isL2 : {true, false}) {
        for (int64_t q : {1, 2, 15, 16, 128, 129, 1000}) {
            SearchCase c;
            c.isL2 = isL2;
            c.q = q;
            expectSearches(c, Hard::Bytes);
        }
        for (int64_t q : {17, 127}) {
            SearchCase c;
            c.isL2 = isL2;
            c.n = 30000;
            c.d = 200;
            c.q = q;
            expectLeft(c);
        }
    }
}

TEST_F(DropinSearch, HardData) {
    for (Hard kind : kHard) {
        for (bool isL2 : {true, false}) {
            for (int64_t q : {1, 16, 130}) {
                for (int d : {1, 3, 16, 17, 64, 130}) {
                    SearchCase c;
                    c.isL2 = isL2;
                    c.q = q;
                    c.d = d;
                    expectSearches(c, kind);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(DropinSearch, EveryK) {
    for (bool isL2 : {true, false}) {
        for (int k : {1, 2, 10, 100, 128, 129, 1024, 2047, 2048}) {
            for (int64_t q : {2, 140}) {
                SearchCase c;
                c.isL2 = isL2;
                c.n = 40000;
                c.q = q;
                c.k = k;
                expectSearches(c, Hard::Terrain);
                expectSearches(c, Hard::Duplicates); // ties beyond k
            }
        }
    }
}

TEST_F(DropinSearch, RowsAndColumns) {
    for (bool isL2 : {true, false}) {
        for (int64_t q : {1, 16, 130}) {
            for (bool queriesRowMajor : {true, false}) {
                SearchCase c;
                c.isL2 = isL2;
                c.q = q;
                c.queriesRowMajor = queriesRowMajor;
                c.d = 33;
                expectSearches(c, Hard::Mixed);
                c.d = 16;
                c.vectorsRowMajor = false;
                expectSearches(c, Hard::Mixed);
                c.d = 17;
                expectLeft(c);
            }
        }
    }
}

TEST_F(DropinSearch, TensorsAnywhereInMemory) {
    for (bool isL2 : {true, false}) {
        for (size_t shift : {1, 2, 3}) {
            for (int64_t q : {1, 16, 130}) {
                SearchCase c;
                c.isL2 = isL2;
                c.q = q;
                c.shift = shift;
                expectSearches(c, Hard::Offset);
            }
        }
    }
}

TEST_F(DropinSearch, GivenNormsAndIgnoredDistances) {
    for (int64_t q : {3, 130}) {
        SearchCase c;
        c.q = q;
        c.norms = true;
        expectSearches(c, Hard::Offset);
        c.ignoreDistances = true;
        expectSearches(c, Hard::Offset);
    }
}

// NaN and infinite distances are no results; what is left over is empty.
TEST_F(DropinSearch, FewerResultsThanPlaces) {
    for (float odd : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
        for (bool isL2 : {true, false}) {
            for (int64_t q : {2, 130}) {
                for (int numbers : {0, 1, 7}) {
                    SearchCase c;
                    c.isL2 = isL2;
                    c.q = q;
                    std::vector<float> vectors =
                            makeHard(Hard::Bytes, c.n, c.d, 1);
                    for (int64_t i = 0; i < c.n; ++i) {
                        if (i % 1000 != 1 || i / 1000 >= numbers) {
                            vectors[i * c.d + i % c.d] = odd;
                        }
                    }
                    // Positive ones, so that no sum is of both infinities.
                    std::vector<float> queries =
                            makeHard(Hard::Bytes, c.q, c.d, 2);
                    for (float& one : queries) {
                        one += 1;
                    }
                    expectSearchesAs<int>(c, vectors, queries, nullptr);
                    expectSearchesAs<int64_t>(c, vectors, queries, nullptr);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

SearchCase manyQueries() {
    SearchCase c;
    c.n = 70000;
    c.q = 500;
    c.d = 40;
    return c;
}

template <class Index>
SearchData<Index> dataOf(const SearchCase& c) {
    return {c,
            makeHard(Hard::Terrain, c.n, c.d, 1),
            makeHard(Hard::Terrain, c.q, c.d, 2)};
}

TEST_F(DropinSearch, IsOrderedOnTheStream) {
    const TestStream stream;
    auto data = dataOf<int64_t>(manyQueries());
    for (int i = 0; i < 10; ++i) {
        data.call(stream);
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    ASSERT_TRUE(data.check());
}

TEST_F(DropinSearch, CanBeCapturedInAGraph) {
    for (bool isL2 : {true, false}) {
        for (int64_t q : {3, 500}) {
            const TestStream stream;
            SearchCase c = manyQueries();
            c.isL2 = isL2;
            c.q = q;
            auto data = dataOf<int64_t>(c);
            CapturedGraph graph(stream, [&] { data.call(stream); });
            for (int i = 0; i < 3; ++i) {
                data.clearOutputs();
                graph.launch();
                ASSERT_TRUE(data.check());
            }
        }
    }
}

TEST_F(DropinSearch, FromManyThreads) {
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t, &wrong] {
            const TestStream stream;
            SearchCase c = manyQueries();
            c.isL2 = t % 2 == 0;
            c.q = t < 2 ? 9 : 300;
            auto data = dataOf<int>(c);
            for (int i = 0; i < 10; ++i) {
                data.clearOutputs();
                data.call(stream);
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                wrong[t] += data.check(3) ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(DropinSearch, OnASecondDevice) {
    int count = 0;
    BITS_CUDA_CHECK(cudaGetDeviceCount(&count));
    if (count < 2) {
        GTEST_SKIP() << "needs two CUDA devices";
    }
    for (int device : {1, 0, 1}) {
        BITS_CUDA_CHECK(cudaSetDevice(device));
        SearchCase c;
        c.q = 130;
        expectSearches(c, Hard::Mixed);
    }
    BITS_CUDA_CHECK(cudaSetDevice(0));
}

// The memory of one search does not stay, beyond what is promised.
TEST_F(DropinSearch, KeepsLittleMemory) {
    size_t free = 0;
    size_t total = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    if (free < size_t(12) << 30) {
        GTEST_SKIP() << "needs 12 GiB of free device memory";
    }
    {
        SearchCase c;
        c.n = 4000000;
        c.q = 128;
        c.d = 256;
        // Rows begin anywhere in a repeated block, so that all differ.
        const auto block = makeHard(Hard::Mixed, 4000037, 1, 1);
        DeviceBuffer<float> vectors(c.n * c.d);
        for (size_t at = 0; at < vectors.size(); at += block.size()) {
            BITS_CUDA_CHECK(cudaMemcpy(
                    vectors.data() + at,
                    block.data(),
                    std::min(block.size(), vectors.size() - at) * sizeof(float),
                    cudaMemcpyHostToDevice));
        }
        const DeviceBuffer<float> queries(makeHard(Hard::Mixed, c.q, c.d, 2));
        DeviceBuffer<float> distances(c.q * c.k);
        DeviceBuffer<int64_t> ids(c.q * c.k);
        BITS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
        faiss::gpu::Matrix<float, int64_t> x{
                vectors.data(), {c.d, 1}, {c.n, c.d}};
        faiss::gpu::Matrix<float, int64_t> y{
                queries.data(), {c.d, 1}, {c.q, c.d}};
        faiss::gpu::Matrix<float, int64_t> outDistances{
                distances.data(), {c.k, 1}, {c.q, c.k}};
        faiss::gpu::Matrix<int64_t, int64_t> outIds{
                ids.data(), {c.k, 1}, {c.q, c.k}};
        faiss::gpu::runIPDistance(
                nullptr, nullptr, x, true, y, true, c.k, outDistances, outIds);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        size_t after = 0;
        BITS_CUDA_CHECK(cudaMemGetInfo(&after, &total));
        // Of more than 2 GiB of scratch; kernels and cuBLAS take some too.
        EXPECT_LT(free - after, size_t(1200) << 20);
    }
}

} // namespace
} // namespace faiss_bits::test
