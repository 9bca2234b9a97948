/// Searches for several nearest vectors of few dimensions by short strips of
/// float32, and for the one nearest by cosine, against canonical distances.

#include "tests/knn/FewDimsTopHarness.h"

namespace faiss_bits::test {
namespace {

TEST_F(FewDimsTop, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kFewDimsTopMetrics) {
            for (int d = 1; d <= 16; ++d) {
                expectTop(of(metric, 2005, 400, d, 1 + (7 * d) % 16), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    for (int d : {2, 3, 8, 13}) {
        expectTop(of(Metric::L2, 2005, 600, d, 9), Hard::Ends);
    }
}

TEST_F(FewDimsTop, BothSidesOfEveryEdge) {
    int round = 0;
    for (int64_t n :
         {1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 2047, 2048, 2049}) {
        for (int64_t q : {1, 7, 8, 9, 127, 128, 129, 511, 512, 513}) {
            for (Metric metric : kFewDimsTopMetrics) {
                CertifiedCase c =
                        of(metric, n, q, 1 + round % 16, 1 + round % 13);
                ++round;
                c.idType = q % 2 ? IdType::Int32 : IdType::Int64;
                expectTop(c, q % 2 ? Hard::Bytes : Hard::Clusters);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Strips of 32, 64 and 128 vectors, and more than 512 of them.
TEST_F(FewDimsTop, LengthOfStrips) {
    const auto logStripOf = [](const CertifiedCase& c) {
        return planOf(c).fewDimsTop->logStrip;
    };
    for (int64_t n : {8192, 8193, 16384, 16385, 32769, 65537, 131072}) {
        for (Metric metric : kFewDimsTopMetrics) {
            const CertifiedCase c = of(metric, n, 300, 4, 16);
            EXPECT_EQ(logStripOf(c), n <= 8192 ? 5u : n <= 16384 ? 6u : 7u);
            expectTop(c, Hard::Clusters);
            expectTop(of(metric, n, 300, 3, 2), Hard::Offset);
        }
    }
    EXPECT_FALSE(planOf(of(Metric::L2, 131073, 300, 4, 2)).fewDimsTop);
}

/// More than 16 places, whose limit is of other steps: lists of four rows.
TEST_F(FewDimsTop, LongLists) {
    constexpr int kPlaces[] = {17, 31, 32, 33, 63, 64, 65, 96, 97, 127, 128};
    for (Hard kind : kHard) {
        for (Metric metric : kFewDimsTopMetrics) {
            for (int d = 1; d <= 4; ++d) {
                const int k = kPlaces[(3 * d + int(kind)) % 11];
                expectTop(of(metric, 9005, 300, d, k), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    int round = 0;
    for (int64_t n : {1, 17, 128, 129, 2047, 4096, 4097, 16385}) {
        for (int64_t q : {1, 9, 511, 513}) {
            for (Metric metric : kFewDimsTopMetrics) {
                const int k = kPlaces[round % 11];
                expectTop(
                        of(metric, n, q, 1 + round % 4, k),
                        q % 2 ? Hard::Bytes : Hard::Clusters);
                ++round;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_FALSE(planOf(of(Metric::L2, 9005, 300, 5, 17)).fewDimsTop);
    EXPECT_FALSE(planOf(of(Metric::L2, 9005, 300, 4, 129)).fewDimsTop);
}

/// Strips of every length, and more than the 512 groups.
TEST_F(FewDimsTop, StripsOfLongLists) {
    for (int64_t n : {32768, 32769, 65536, 65537, 131072}) {
        for (Metric metric : kFewDimsTopMetrics) {
            const CertifiedCase c = of(metric, n, 300, 2, 128);
            EXPECT_EQ(
                    planOf(c).fewDimsTop->logStrip,
                    n <= 32768           ? 5u
                            : n <= 65536 ? 6u
                                         : 7u);
            expectTop(c, Hard::Clusters);
            expectTop(of(metric, n, 300, 3, 40), Hard::Offset);
        }
    }
}

TEST_F(FewDimsTop, SixteenBits) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Mixed, Hard::Infinite}) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            for (bool exactQueries : {false, true}) {
                for (Metric metric : kFewDimsTopMetrics) {
                    CertifiedCase c =
                            of(metric, 1000, 700, exactQueries ? 3 : 8, 5);
                    c.dataType = type;
                    c.exactQueries = exactQueries;
                    expectTop(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Tiles of queries, the last of them fewer: the same bits.
TEST_F(FewDimsTop, LittleScratch) {
    for (Metric metric : kFewDimsTopMetrics) {
        CertifiedCase c = of(metric, 3000, 5001, 4, 7);
        const auto vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
        const auto queries = makeHard(Hard::Clusters, c.q, c.d, 2);
        const KnnResult all = search(c, vectors, queries);
        check(c, vectors, queries, all, 100);
        c.maxScratch = 800000;
        ASSERT_TRUE(planOf(c).fewDimsTop);
        EXPECT_LT(planOf(c).fewDimsTop->tileQueries, 1700);
        EXPECT_TRUE(search(c, vectors, queries) == all);
    }
}

/// As planned from the shape: column-major arrays, dirty scratch, a stream.
TEST_F(FewDimsTop, Layouts) {
    const TestStream stream;
    for (Metric metric : kFewDimsTopMetrics) {
        for (bool rows : {true, false}) {
            KnnCase c;
            c.metric = metric;
            c.n = 2049;
            c.q = 9141;
            c.d = 4;
            c.k = 5;
            c.vectorsRowMajor = rows;
            c.queriesRowMajor = !rows;
            c.data = Vectors::Special;
            const KnnData data(c);
            FlatKnnProblem p = data.problem();
            p.device.singleToDouble = 2;
            const auto plan = planFlatKnn(p, kRoomyScratch);
            ASSERT_TRUE(plan.fewDimsTop) << c.describe();
            for (int byte : {0x00, 0xFF}) {
                DeviceBuffer<float> distances(c.q * c.k, 0xA5);
                DeviceBuffer<uint8_t> ids(c.q * c.k * sizeof(int64_t), 0xA5);
                DeviceBuffer<uint8_t> scratch(plan.bytes, byte);
                p.outDistances = distances.data();
                p.outIds = ids.data();
                runFlatKnn(
                        plan,
                        p,
                        {scratch.data(), scratch.size()},
                        nullptr,
                        stream);
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                EXPECT_TRUE(data.check(
                        {distances.download(),
                         unpackIds(c.idType, ids.download())}));
            }
        }
    }
}

TEST_F(FewDimsTop, Small) {
    for (Metric metric : kFewDimsTopMetrics) {
        for (int d : {1, 4, 5, 8, 11, 16}) {
            expectTop(of(metric, 600, 530, d, 5), Hard::Bytes);
            expectTop(of(metric, 300, 130, d, 16), Hard::Infinite);
            if (d <= 4) {
                expectTop(of(metric, 4100, 70, d, 65), Hard::Clusters);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
