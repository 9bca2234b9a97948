/// The second search of certified searches for the one nearest vector of few
/// dimensions: flagged rows by strips of float32, against canonical distances.

#include <algorithm>
#include <numeric>
#include <random>

#include "kernels/knn/nearest/FewDimsKnn.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kMetrics[] = {Metric::L2, Metric::InnerProduct};

class FewDimsAgain : public FlatKnnCertified {
   protected:
    /// Of rows with a flag the results are canonical, others stay as they are.
    void check(Metric metric, int64_t n, int64_t rows, int d, int64_t flagged) {
        SCOPED_TRACE(
                std::string(metricName(metric)) + " n=" + std::to_string(n) +
                " rows=" + std::to_string(rows) + " d=" + std::to_string(d) +
                " flagged=" + std::to_string(flagged));
        const auto vectors = makeHard(Hard::Bytes, n, d, 1);
        const auto queries = makeHard(Hard::Bytes, rows, d, 2);
        std::mt19937 random(unsigned(n + rows + flagged));
        std::vector<int64_t> order(rows);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        std::vector<uint8_t> flags(2 * rows);
        for (int64_t i = 0; i < flagged; ++i) {
            const uint32_t which = random() % 3; // the first, the second, both
            flags[2 * order[i]] = which != 1;
            flags[2 * order[i] + 1] = which != 0;
        }
        FlatKnnProblem p;
        p.metric = metric;
        p.numVectors = n;
        p.numQueries = rows;
        p.d = d;
        p.k = 1;
        WorkspaceSlices sizes;
        takeFewDimsAgain(p, rows, sizes);
        const DeviceBuffer<uint8_t> scratch(sizes.used(), 0xFF);
        WorkspaceSlices slices({scratch.data(), scratch.size()});
        FewDimsParams params = takeFewDimsAgain(p, rows, slices);
        const DeviceBuffer<uint32_t> counts(kMaxScanSlots, 0xFF);
        params.counts = counts.data();
        const DeviceBuffer<float> deviceVectors(vectors);
        const DeviceBuffer<float> deviceQueries(queries);
        const DeviceBuffer<uint8_t> deviceFlags(flags);
        const DeviceBuffer<float> distances(rows, 0xA5);
        const DeviceBuffer<int64_t> ids(rows, 0xA5);
        const DeviceBuffer<unsigned long long> repeated(1, 0x00);
        params.search.vectors = {deviceVectors.data(), DataType::Float32, d, 1};
        params.search.n = n;
        params.search.d = d;
        params.search.queries = deviceQueries.data();
        params.search.rows = uint32_t(rows);
        params.search.k = 1;
        params.search.flags = deviceFlags.data();
        params.search.numRepeated = repeated.data();
        params.search.outDistances = distances.data();
        params.search.outIds = ids.data();
        launchFewDimsAgain(
                metric, params, deviceTraits().multiprocessors, nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        EXPECT_EQ(repeated.download()[0], uint64_t(flagged));
        const auto foundDistances = distances.download();
        const auto foundIds = ids.download();
        for (int64_t row = 0; row < rows; ++row) {
            if (!flags[2 * row] && !flags[2 * row + 1]) {
                ASSERT_EQ(uint64_t(foundIds[row]), 0xA5A5A5A5A5A5A5A5u) << row;
                continue;
            }
            ASSERT_TRUE(isCanonical(
                    canonicalTopK(
                            metric,
                            2,
                            queries.data() + row * d,
                            vectors.data(),
                            n,
                            d,
                            1),
                    isSimilarity(metric),
                    &foundDistances[row],
                    &foundIds[row],
                    1))
                    << "row " << row;
        }
    }

    Result expectAgain(const CertifiedCase& c, Hard kind) {
        const FlatKnnPlan plan = planOf(c);
        EXPECT_TRUE(plan.nearest || plan.fused) << c.describe();
        return expectCanonical(c, kind);
    }
};

/// None, one, a warp, a thread for each, several tiles.
TEST_F(FewDimsAgain, AnyNumberOfRows) {
    for (int64_t flagged :
         {0, 1, 31, 32, 33, 127, 128, 129, 511, 512, 513, 1300}) {
        for (Metric metric : kMetrics) {
            for (int d : {1, 4, 6, 8, 9, 16}) {
                check(metric, 700, 1300, d, flagged);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FewDimsAgain, AnyNumberOfVectors) {
    for (int64_t n : {1, 7, 255, 256, 257, 513, 3000}) {
        for (int64_t rows : {1, 8, 9, 129, 600}) {
            for (Metric metric : kMetrics) {
                check(metric, n, rows, int(1 + n % 16), (rows + 1) / 2);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// So many rows that blocks share the question whether there are any.
TEST_F(FewDimsAgain, ManyRows) {
    for (int64_t flagged : {0, 3, 40000, 70001}) {
        check(Metric::L2, 300, 70001, 3, flagged);
    }
}

TEST_F(FewDimsAgain, AfterNearest) {
    unsigned long long repeated = 0;
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (int d : {1, 2, 4, 5, 8, 9, 12, 13, 16}) {
                const int64_t n = 4099;
                const int64_t q = (1 << 26) / (n * d) + 1;
                const CertifiedCase c =
                        caseOf(Direct::NearestFirst, metric, n, q, d, 1);
                repeated += expectAgain(c, kind).repeated;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(repeated, 10000u);
}

TEST_F(FewDimsAgain, AfterLists) {
    unsigned long long repeated = 0;
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (int d : {2, 4, 7, 8, 9, 12, 15, 16}) {
                const CertifiedCase c =
                        caseOf(Direct::FusedFirst, metric, 20011, 600, d, 1);
                repeated += expectAgain(c, kind).repeated;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(repeated, 1000u);
}

/// Small numbers, of which thousands are as near; strips of two units; tiles.
TEST_F(FewDimsAgain, Ties) {
    for (Metric metric : kMetrics) {
        for (size_t room : {kRoomyScratch, size_t(48) << 20}) {
            CertifiedCase c =
                    caseOf(Direct::NearestFirst, metric, 65536, 70000, 5, 1);
            c.maxScratch = room;
            c.idType = IdType::Int32;
            std::mt19937 random(5);
            std::vector<float> vectors(c.n * c.d);
            std::vector<float> queries(c.q * c.d);
            for (std::vector<float>* rows : {&vectors, &queries}) {
                for (float& one : *rows) {
                    one = float(random() % 4);
                }
            }
            ASSERT_TRUE(planOf(c).nearest);
            const Result result = search(c, vectors, queries);
            FlatKnnCertified::check(c, vectors, queries, result, 40);
            EXPECT_GT(result.repeated, 5000u);
        }
    }
}

TEST_F(FewDimsAgain, SixteenBits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (bool exactQueries : {false, true}) {
            for (Metric metric : kMetrics) {
                CertifiedCase c =
                        caseOf(Direct::NearestFirst, metric, 8192, 2048, 6, 1);
                c.dataType = type;
                c.exactQueries = exactQueries;
                for (int d : {6, 11}) {
                    c.d = d;
                    expectAgain(c, Hard::Bytes);
                    expectAgain(c, Hard::Mixed);
                }
            }
        }
    }
}

TEST_F(FewDimsAgain, Small) {
    for (Metric metric : kMetrics) {
        for (int d : {1, 3, 6, 8, 10, 16}) {
            for (int64_t flagged : {0, 5, 140}) {
                check(metric, 300, 200, d, flagged);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
