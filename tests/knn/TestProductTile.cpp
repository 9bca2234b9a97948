/// Tiles of products in the scan of repeated queries: components come in steps
/// of eight, in each type and layout of the vectors.

#include <cmath>
#include <string>

#include "tests/knn/ScanAgainHarness.h"

namespace faiss_bits::test {
namespace {

const std::vector<DataType> kTypes = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

const std::vector<Metric> kMetrics = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class ProductTile : public GpuTest {
   protected:
    void expectNearest(
            const ScanCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        SCOPED_TRACE(
                "metric " + std::to_string(int(c.metric)) + " type " +
                std::to_string(int(c.type)) + " n " + std::to_string(c.n) +
                " d " + std::to_string(c.d) + " q " + std::to_string(c.q) +
                (c.isByColumns ? " by columns" : ""));
        expectScanned(
                c,
                vectors,
                queries,
                [&](const ScanAgainParams& params, const auto& check) {
                    const TestStream stream;
                    const auto launch = c.metric == Metric::L2
                            ? launchScanAgain<Metric::L2>
                            : c.metric == Metric::Cosine
                            ? launchScanAgain<Metric::Cosine>
                            : launchScanAgain<Metric::InnerProduct>;
                    launch(params, multiprocessorCount(), stream);
                    check();
                });
    }

    /// Of each type and metric.
    void expectNearest(ScanCase c) {
        for (DataType type : kTypes) {
            for (Metric metric : kMetrics) {
                c.type = type;
                c.metric = metric;
                expectNearest(
                        c,
                        makeDeviates(size_t(c.n) * c.d, 1),
                        makeDeviates(size_t(c.q) * c.d, 2));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }

    static std::vector<float> makeDeviates(size_t count, uint32_t seed) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        std::vector<float> values(count);
        for (float& value : values) {
            value = normal(random);
        }
        return values;
    }
};

/// So many rows that L2 makes tiles of them, and vectors of two steps of the
/// scan, of which the last tile is not whole.
ScanCase caseOf(int d, uint32_t q) {
    ScanCase c;
    c.n = 2601;
    c.d = d;
    c.q = q;
    c.k = 9;
    return c;
}

TEST_F(ProductTile, EveryDimension) {
    for (int d : {1, 2, 7, 8, 9, 15, 16, 17, 24, 25, 33}) {
        for (bool isByColumns : {false, true}) {
            ScanCase c = caseOf(d, 17);
            c.isByColumns = isByColumns;
            expectNearest(c);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Around the queries that lanes, warps and tiles have.
TEST_F(ProductTile, EveryNumberOfRows) {
    for (uint32_t q :
         {9, 16, 17, 24, 25, 31, 32, 33, 40, 41, 48, 49, 63, 64, 65, 129}) {
        expectNearest(caseOf(11, q));
        if (HasFailure()) {
            return;
        }
    }
}

/// Several tiles a block: the first components of the next come with the last
/// of one.
TEST_F(ProductTile, ManyTiles) {
    for (int d : {8, 17}) {
        ScanCase c = caseOf(d, 65);
        c.n = 52011;
        expectNearest(c);
        if (HasFailure()) {
            return;
        }
    }
}

/// In the first, a middle and the last components, of some rows.
TEST_F(ProductTile, Infinities) {
    for (DataType type : kTypes) {
        for (Metric metric : kMetrics) {
            for (int at : {0, 7, 8, 15, 16, 18}) {
                ScanCase c = caseOf(19, 33);
                c.type = type;
                c.metric = metric;
                auto vectors = makeDeviates(size_t(c.n) * c.d, 3);
                auto queries = makeDeviates(size_t(c.q) * c.d, 4);
                const float odd[] = {HUGE_VALF, -HUGE_VALF, std::nanf("")};
                for (int64_t i = 0; i < c.n; i += 5) {
                    vectors[i * c.d + at] = odd[i / 5 % 3];
                }
                queries[at] = HUGE_VALF;
                queries[20 * c.d + at] = -HUGE_VALF;
                expectNearest(c, vectors, queries);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Integers but for one component of one row, in a step behind the first: sums
/// are exact no more.
TEST_F(ProductTile, NotAllIntegers) {
    for (Metric metric : kMetrics) {
        for (int at : {-1, 3, 8, 23}) {
            ScanCase c = caseOf(24, 20);
            c.metric = metric;
            auto vectors = makeIntegers(size_t(c.n) * c.d, 5);
            auto queries = makeIntegers(size_t(c.q) * c.d, 6);
            if (at >= 0) {
                queries[7 * c.d + at] = 1.0f / 3;
                vectors[100 * c.d + at] = 1e6f / 7;
            }
            expectNearest(c, vectors, queries);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Copies of four vectors, off by some units in the last place that 16 bits
/// have: products leave pairs in doubt, which differences tell apart, and whole
/// tiles are computed as distances are defined.
TEST_F(ProductTile, NearCopies) {
    for (DataType type : kTypes) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int d : {15, 33, 40}) {
                for (uint32_t q : {12, 70}) {
                    ScanCase c = caseOf(d, q);
                    c.n = 5201;
                    c.type = type;
                    c.metric = metric;
                    const auto centers = makeDeviates(size_t(4) * d, 7);
                    std::mt19937 random(8);
                    const auto makeCopies = [&](int64_t rows, float unit) {
                        std::vector<float> values;
                        for (int64_t i = 0; i < rows; ++i) {
                            const size_t kind = random() % 4 * d;
                            for (int j = 0; j < d; ++j) {
                                const float off = float(random() % 4) * unit;
                                values.push_back(centers[kind + j] * (1 + off));
                            }
                        }
                        return values;
                    };
                    const auto vectors = makeCopies(c.n, 0x1p-9f);
                    const auto queries = makeCopies(c.q, 0x1p-20f);
                    expectNearest(c, vectors, queries);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(ProductTile, Small) {
    expectNearest(caseOf(9, 17));
}

} // namespace
} // namespace faiss_bits::test
