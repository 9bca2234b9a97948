/// Ties, infinities and repeatability of GpuIndexBitsFlat.

#include <cmath>
#include <limits>

#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class FlatValues : public GpuTest {};

/// Few and many queries take different paths.
const std::vector<int64_t> kBatches = {1, 2, 16, 17, 60};

TEST_F(FlatValues, SmallTiesGoToTheLowerId) {
    FlatCase c;
    c.n = 3000;
    c.d = 8;
    c.fill = Fill::Integers;
    for (int64_t q : kBatches) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            FlatData data(kind);
            // Every vector thirty times, a hundred apart.
            for (int64_t i = 100; i < c.n; ++i) {
                for (int j = 0; j < c.d; ++j) {
                    data.vectors[i * c.d + j] =
                            data.vectors[(i % 100) * c.d + j];
                }
            }
            const auto index = data.makeIndex();
            for (int k : {1, 29, 31, 500, 2048, 2900, 3000}) {
                data.expectExact(searchOnHost(*index, data.queries, k), k);
            }
        }
    }
}

TEST_F(FlatValues, SmallAllVectorsEqual) {
    FlatCase c;
    c.n = 5000;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            FlatData data(kind);
            std::fill(data.vectors.begin(), data.vectors.end(), 2.f);
            const auto index = data.makeIndex();
            for (int k : {1, 100, 2048, 2049, 5000}) {
                data.expectExact(searchOnHost(*index, data.queries, k), k);
            }
        }
    }
}

/// The nearest come last, or first: the worst and the best order for a queue.
TEST_F(FlatValues, SortedVectors) {
    FlatCase c;
    c.n = 40000;
    c.d = 1;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            for (bool ascending : {true, false}) {
                FlatData data(kind);
                for (int64_t i = 0; i < c.n; ++i) {
                    // Exact in float16, with ties.
                    data.vectors[i] =
                            float((ascending ? i : c.n - i) / 40) * 2.f;
                }
                std::fill(data.queries.begin(), data.queries.end(), 1.f);
                const auto index = data.makeIndex();
                data.expectExact(searchOnHost(*index, data.queries, 300), 300);
            }
        }
    }
}

TEST_F(FlatValues, SmallInfiniteVectors) {
    FlatCase c;
    c.n = 800;
    c.d = 5;
    for (int64_t q : kBatches) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            FlatData data(kind);
            for (int64_t i = 3; i < c.n; i += 10) {
                data.vectors[i * c.d] = i % 20 == 3 ? kInf : -kInf;
            }
            const auto index = data.makeIndex();
            for (int k : {1, 100, 800}) {
                data.expectNearest(searchOnHost(*index, data.queries, k), k);
            }
        }
    }
}

/// Norms that float16 cannot hold: FAISS's own are infinite here.
TEST_F(FlatValues, SmallLargeFloat16Components) {
    FlatCase c;
    c.useFloat16 = true;
    c.n = 500;
    c.d = 16;
    for (int64_t q : {1, 40}) {
        c.q = q;
        FlatData data(c);
        for (float& value : data.vectors) {
            value *= 3000.f;
        }
        for (float& value : data.queries) {
            value *= 3000.f;
        }
        const auto index = data.makeIndex();
        data.expectNearest(searchOnHost(*index, data.queries, 30), 30);

        // The same through copyFrom.
        faiss::IndexFlatL2 cpu(c.d);
        cpu.add(c.n, data.vectors.data());
        index->copyFrom(&cpu);
        data.expectNearest(searchOnHost(*index, data.queries, 30), 30);
    }
}

/// Far from the origin the expanded form loses digits, but not its bound.
TEST_F(FlatValues, DistancesAreNeverNegative) {
    FlatCase c;
    c.n = 2000;
    c.d = 64;
    c.q = 60;
    FlatData data(c);
    for (float& value : data.vectors) {
        value += 1000.f;
    }
    std::copy(
            data.vectors.begin(),
            data.vectors.begin() + c.q * c.d,
            data.queries.begin());
    const auto index = data.makeIndex();
    const auto out = searchOnHost(*index, data.queries, 100);
    data.expectNearest(out, 100);
    for (float distance : out.distances) {
        ASSERT_GE(distance, 0.f);
    }
}

TEST_F(FlatValues, SmallSameBitsEveryRun) {
    FlatCase c;
    c.n = 30000;
    c.d = 40;
    for (int64_t q : kBatches) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            const FlatData data(kind);
            const auto index = data.makeIndex();
            for (int k : {10, 2048, 7000}) {
                const auto first = searchOnDevice(*index, data.queries, k);
                for (int run = 0; run < 3; ++run) {
                    ASSERT_TRUE(sameOutput(
                            searchOnDevice(*index, data.queries, k), first))
                            << kind << " k=" << k;
                }
            }
        }
    }
}

/// A query's result does not depend on its companions. With integers the two
/// forms of a distance agree to the bit, so this is exact.
TEST_F(FlatValues, ResultsDoNotDependOnTheBatch) {
    FlatCase c;
    c.n = 10000;
    c.d = 24;
    c.q = 70;
    c.fill = Fill::Integers;
    const int k = 50;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto index = data.makeIndex();
        const auto together = searchOnHost(*index, data.queries, k);
        for (int64_t i : {0, 1, 35, 69}) {
            const std::vector<float> one(
                    data.queries.begin() + i * c.d,
                    data.queries.begin() + (i + 1) * c.d);
            const auto alone = searchOnHost(*index, one, k);
            for (int j = 0; j < k; ++j) {
                ASSERT_EQ(alone.labels[j], together.labels[i * k + j]);
                ASSERT_EQ(alone.distances[j], together.distances[i * k + j]);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
