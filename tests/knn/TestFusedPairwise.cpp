/// Selection in the kernel of pairwise distances: what passes, for every metric
/// and kernel, against the reference.

#include "tests/common/ExpectError.h"
#include "tests/common/GpuTest.h"
#include "tests/knn/FusedPairwiseHarness.h"

namespace faiss_bits::test {
namespace {

class FusedPairwiseTest : public GpuTest,
                          public ::testing::WithParamInterface<int> {
   protected:
    static MetricAndPower metric() {
        return kFusedMetrics[GetParam()];
    }
};

/// Both sides of every edge between kernels, and d that is padded.
TEST_P(FusedPairwiseTest, Dimensions) {
    uint32_t seed = 1;
    for (int d : {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 36, 65}) {
        for (int64_t q : {1, 2, 5, 16, 17, 97}) {
            FusedCase c;
            c.rows.metric = metric();
            c.rows.d = d;
            c.rows.q = q;
            c.rows.n = 261;
            c.rows.dataType = kDataTypes[seed % 3];
            c.queryType = seed % 2 ? DataType::Float32 : c.rows.dataType;
            c.rows.seed = ++seed;
            expectRightLists(c);
        }
    }
}

TEST_P(FusedPairwiseTest, Data) {
    uint32_t seed = 1000;
    for (Components data : kManyComponents) {
        if (metric().metric == Metric::InnerProduct &&
            data == Components::Huge) {
            continue; // products leave the range where their sum does not
        }
        for (int d : {3, 7, 16, 40}) {
            for (int64_t q : {3, 20, 130}) {
                FusedCase c;
                c.rows.metric = metric();
                c.rows.data = data;
                c.rows.d = d;
                c.rows.q = q;
                c.rows.n = 150;
                c.rows.dataType =
                        data == Components::Huge || data == Components::Tiny
                        ? (seed % 2 ? DataType::Float32 : DataType::BFloat16)
                        : kDataTypes[seed % 3];
                c.capacity = seed % 3 * 4;
                c.rows.seed = ++seed;
                expectRightLists(c);
            }
        }
    }
}

TEST_P(FusedPairwiseTest, Layouts) {
    uint32_t seed = 2000;
    for (int layout = 0; layout < 8; ++layout) {
        for (int d : {3, 8, 12, 20}) {
            for (int64_t q : {4, 30, 140}) {
                FusedCase c;
                c.rows.metric = metric();
                c.rows.d = d;
                c.rows.q = q;
                c.rows.n = 299;
                c.rows.vectorsRowMajor = layout & 1;
                c.rows.queriesRowMajor = layout & 2;
                c.rows.shift = layout & 4 ? 1 : 0;
                c.rows.dataType = kDataTypes[seed % 3];
                c.queryType = kDataTypes[seed / 3 % 3];
                c.filtered = layout & 1;
                c.rows.data =
                        seed % 2 ? Components::Signed : Components::Positive;
                c.rows.seed = ++seed;
                expectRightLists(c);
            }
        }
    }
}

/// Every kernel once, with rows that are not fit.
TEST_P(FusedPairwiseTest, SmallEveryKernel) {
    uint32_t seed = 5000;
    for (int d : {3, 6, 14, 35}) {
        for (int64_t q : {2, 5, 40, 135}) {
            FusedCase c;
            c.rows.metric = metric();
            c.rows.data = seed % 2 ? Components::Signed : Components::Tiny;
            c.rows.d = d;
            c.rows.q = q;
            c.rows.n = 140;
            c.filtered = seed % 3 == 0;
            c.capacity = 3;
            c.rows.seed = ++seed;
            expectRightLists(c);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        FusedPairwiseTest,
        ::testing::Range(0, int(kFusedMetrics.size())),
        [](const auto& info) {
            const MetricAndPower& m = kFusedMetrics[info.param];
            std::string name = metricName(m.metric);
            if (m.metric == Metric::Lp) {
                name += std::to_string(int(m.p * 10));
            }
            return name;
        });

class FusedPairwiseSizesTest : public GpuTest {};

/// Both sides of every tile's edges.
TEST_F(FusedPairwiseSizesTest, Edges) {
    uint32_t seed = 3000;
    for (MetricAndPower metric :
         {MetricAndPower{Metric::L1}, MetricAndPower{Metric::Jaccard}}) {
        for (int64_t n : {1, 3, 5, 128, 129, 256, 257, 511, 513, 1025}) {
            for (int64_t q : {1, 16, 17, 64, 65, 96, 97, 128, 129, 257}) {
                for (int d : {3, 12, 18}) {
                    FusedCase c;
                    c.rows.metric = metric;
                    c.rows.n = n;
                    c.rows.q = q;
                    c.rows.d = d;
                    c.rows.seed = ++seed;
                    expectRightLists(c);
                }
            }
        }
    }
}

/// Blocks that take several tiles, of several tiles of queries.
TEST_F(FusedPairwiseSizesTest, LongParts) {
    uint32_t seed = 4000;
    for (int multiprocessors : {1, 2, 7}) {
        for (int d : {3, 6, 16, 40}) {
            for (int64_t q : {1, 12, 300, 700}) {
                FusedCase c;
                c.rows.metric = {seed % 2 ? Metric::L1 : Metric::BrayCurtis};
                c.rows.data =
                        seed % 3 ? Components::Positive : Components::Signed;
                c.rows.n = 5000;
                c.rows.q = q;
                c.rows.d = d;
                c.multiprocessors = multiprocessors;
                c.filtered = seed % 2;
                c.capacity = 10;
                c.rows.seed = ++seed;
                expectRightLists(c);
            }
        }
    }
}

TEST_F(FusedPairwiseSizesTest, SmallNothing) {
    FusedPairwiseProblem p;
    p.d = 3;
    runFusedPairwise(p, nullptr); // no vectors, no queries
}

TEST_F(FusedPairwiseSizesTest, SmallBadArguments) {
    const DeviceBuffer<float> data(64);
    const DeviceBuffer<uint32_t> lists(64, 0);
    FusedPairwiseProblem good;
    good.d = 2;
    good.numVectors = good.numQueries = 4;
    good.vectors = good.queries = data.data();
    good.passed = {data.data(), lists.data(), lists.data(), 1};
    const auto throwsFor =
            [&](const char* name, const char* value, auto change) {
                FusedPairwiseProblem bad = good;
                change(bad);
                return throwsNaming(
                        [&] { runFusedPairwise(bad, nullptr); }, name, value);
            };
    EXPECT_TRUE(throwsFor("d", "0", [](auto& p) { p.d = 0; }));
    EXPECT_TRUE(
            throwsFor("numVectors", "-1", [](auto& p) { p.numVectors = -1; }));
    EXPECT_TRUE(
            throwsFor("numQueries", "-1", [](auto& p) { p.numQueries = -1; }));
    EXPECT_TRUE(throwsFor(
            "vectors", "nullptr", [](auto& p) { p.vectors = nullptr; }));
    EXPECT_TRUE(throwsFor(
            "queries", "nullptr", [](auto& p) { p.queries = nullptr; }));
    EXPECT_TRUE(throwsFor(
            "limits", "nullptr", [](auto& p) { p.passed.limits = nullptr; }));
    EXPECT_TRUE(throwsFor(
            "counts", "nullptr", [](auto& p) { p.passed.counts = nullptr; }));
    EXPECT_TRUE(throwsFor(
            "columns", "nullptr", [](auto& p) { p.passed.columns = nullptr; }));
    EXPECT_TRUE(throwsFor("vectorFacts", "nullptr", [](auto& p) {
        p.metric = Metric::Jaccard;
    }));
    EXPECT_TRUE(throwsFor(
            "metricArg", "0", [](auto& p) { p.metric = Metric::Lp; }));
}

} // namespace
} // namespace faiss_bits::test
