/// The metrics beyond L2 and inner product, over every shape, type and layout.

#include "kernels/knn/RowFacts.h"
#include "tests/knn/MetricHarness.h"

namespace faiss_bits::test {
namespace {

/// Tests that run once for each metric.
class FlatMetrics : public FlatMetricTest,
                    public ::testing::WithParamInterface<MetricAndPower> {
   protected:
    MetricCase base() const {
        MetricCase c;
        c.metric = GetParam();
        return c;
    }
};

INSTANTIATE_TEST_SUITE_P(
        All,
        FlatMetrics,
        ::testing::ValuesIn(kManyMetrics),
        [](const auto& info) {
            std::string name = metricName(info.param.metric);
            if (info.param.metric == Metric::Lp) {
                name += std::to_string(int(10 * info.param.p));
            }
            return name;
        });

/// Both sides of the edges of every tile: 4, 16 and 128 queries, 128 and 256
/// vectors.
TEST_P(FlatMetrics, EveryTile) {
    const std::vector<int> dims = {1, 2, 3, 4, 7, 8, 9, 16, 31, 33};
    size_t next = 0;
    for (int64_t q : {1,  2,  3,  4,  5,  15,  16,  17,  31,  32,
                      33, 64, 95, 96, 97, 127, 128, 129, 130, 257}) {
        for (int64_t n : {1, 3, 7, 8, 127, 128, 129, 255, 256, 257, 300}) {
            MetricCase c = base();
            c.q = q;
            c.n = n;
            c.d = dims[next++ % dims.size()];
            expectRight(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(FlatMetrics, EveryDimension) {
    for (int d : {1,  2,  3,  4,  5,  6,  7,  8,  9,   12,  15,  16,
                  17, 24, 31, 32, 33, 63, 64, 65, 128, 129, 130, 1000}) {
        for (int64_t q : {3, 12, 140}) {
            MetricCase c = base();
            c.d = d;
            c.q = q;
            c.n = 270;
            expectRight(c, 4);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(FlatMetrics, EveryTypeAndLayout) {
    for (DataType type : kDataTypes) {
        for (bool vectorsRowMajor : {false, true}) {
            for (bool queriesRowMajor : {false, true}) {
                for (int64_t q : {1, 3, 20, 130}) {
                    for (int d : {1, 3, 8, 20, 33}) {
                        MetricCase c = base();
                        c.dataType = type;
                        c.vectorsRowMajor = vectorsRowMajor;
                        c.queriesRowMajor = queriesRowMajor;
                        c.q = q;
                        c.d = d;
                        expectRight(c, 4);
                        if (HasFatalFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

TEST_P(FlatMetrics, AnyAlignmentOfThePointers) {
    for (DataType type : kDataTypes) {
        for (size_t shift : {1, 2, 3, 4}) {
            for (int64_t q : {2, 17, 130}) {
                for (int d : {4, 7, 8, 64}) {
                    MetricCase c = base();
                    c.dataType = type;
                    c.shift = shift;
                    c.q = q;
                    c.d = d;
                    expectRight(c, 4);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_P(FlatMetrics, EveryKindOfComponents) {
    for (Components data : kManyComponents) {
        for (DataType type : kDataTypes) {
            for (int64_t q : {1, 7, 130}) {
                for (int d : {2, 3, 17, 40}) {
                    MetricCase c = base();
                    c.data = data;
                    c.dataType = type;
                    c.q = q;
                    c.d = d;
                    c.k = 20;
                    expectRight(c, 8);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_P(FlatMetrics, EveryK) {
    for (int k : {1, 2, 31, 100, 299, 300, 301, 2048, 2049, 5000}) {
        for (int64_t q : {1, 20, 130}) {
            MetricCase c = base();
            c.k = k;
            c.q = q;
            c.data = Components::Few;
            expectRight(c, 2);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(FlatMetrics, NoVectors) {
    for (int64_t q : {1, 40}) {
        MetricCase c = base();
        c.n = 0;
        c.q = q;
        SCOPED_TRACE(c.describe());
        const MetricData data(c);
        ASSERT_TRUE(data.isBestOf({}, data.search(handle())));
    }
}

/// Tiles of vectors and of queries, pages of queries: a pair has the same bits
/// in all, fit or not (RowFacts).
TEST_P(FlatMetrics, NothingChangesTheBits) {
    for (Components data :
         {Components::Few,
          Components::Positive,
          Components::Signed,
          Components::Tiny}) {
        for (int d : {3, 20}) {
            MetricCase c = base();
            c.n = 34001;
            c.q = 133;
            c.d = d;
            c.data = data;
            SCOPED_TRACE(c.describe());
            MetricData searched(c);
            const std::vector<float> all = searched.allDistances(handle());
            const KnnResult whole = searched.search(handle());
            ASSERT_TRUE(searched.isBestOf(all, whole));
            for (size_t most : {kLeastScratch, size_t(1) << 22}) {
                searched.options().maxScratch = most;
                for (int64_t page : {1, 2, 16, 17, 64, 133}) {
                    if (page == 1 && most > 0) {
                        continue;
                    }
                    ASSERT_TRUE(whole == searched.search(handle(), page))
                            << "page=" << page << " maxScratch=" << most;
                }
            }
        }
    }
}

/// How near the errors come to their bounds; they must not pass them.
TEST_P(FlatMetrics, BoundsHoldUnderAttack) {
    double worst = 0;
    for (Components data :
         {Components::Positive,
          Components::Signed,
          Components::Far,
          Components::Histograms,
          Components::Tiny}) {
        for (int d : {1, 2, 16, 128, 1000, 3001}) {
            for (uint32_t seed : {1, 2}) {
                MetricCase c = base();
                c.data = data;
                c.d = d;
                c.q = 20;
                c.n = 200;
                c.seed = seed;
                const MetricData attacked(c);
                const auto all = attacked.allDistances(handle());
                ASSERT_TRUE(attacked.withinBounds(all, 4, &worst));
            }
        }
    }
    RecordProperty("worst", std::to_string(worst));
    std::printf("largest error: %.3f of its bound\n", worst);
    EXPECT_LE(worst, 1.0);
}

/// Facts of the vectors that the caller brings: the same bits, less scratch.
TEST_P(FlatMetrics, SmallGivenFacts) {
    const RowFacts kind = rowFactsOf(GetParam().metric);
    for (DataType type : kDataTypes) {
        for (Components components :
             {Components::Positive, Components::Signed, Components::Huge}) {
            for (int64_t q : {1, 40}) {
                MetricCase c = base();
                c.dataType = type;
                c.data = components;
                c.q = q;
                c.n = 1003;
                c.d = 9;
                SCOPED_TRACE(c.describe());
                const MetricData data(c);
                FlatKnnProblem p = data.problem();
                DeviceBuffer<float> facts(c.n, 0xA5);
                DeviceBuffer<RowMaxima> maxima(1, 0xA5);
                runRowFacts(
                        kind,
                        p.vectors,
                        p.dataType,
                        true,
                        c.n,
                        c.d,
                        facts.data(),
                        nullptr);
                runRowMaxima(
                        p.vectors,
                        p.dataType,
                        true,
                        c.n,
                        c.d,
                        maxima.data(),
                        nullptr);
                const auto search = [&](bool given) {
                    DeviceBuffer<float> distances(c.q * c.k, 0xA5);
                    DeviceBuffer<int64_t> ids(c.q * c.k, 0xA5);
                    p.vectorFacts = given ? facts.data() : nullptr;
                    p.rowMaxima = given ? maxima.data() : nullptr;
                    p.outDistances = distances.data();
                    p.outIds = ids.data();
                    DeviceBuffer<uint8_t> scratch(
                            flatKnnWorkspaceBytes(p, c.maxScratch), 0xFF);
                    runFlatKnn(
                            p,
                            {scratch.data(), scratch.size()},
                            handle(),
                            nullptr);
                    BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
                    return KnnResult{distances.download(), ids.download()};
                };
                for (SearchMode mode :
                     {SearchMode::Plain, SearchMode::Certified}) {
                    p.mode = mode;
                    ASSERT_TRUE(search(true) == search(false));
                }
            }
        }
    }
}

/// For compute-sanitizer.
TEST_P(FlatMetrics, SmallSearches) {
    for (DataType type : kDataTypes) {
        for (int64_t q : {2, 18, 130}) {
            for (bool rowMajor : {false, true}) {
                MetricCase c = base();
                c.dataType = type;
                c.q = q;
                c.n = 259;
                c.d = 9;
                c.vectorsRowMajor = c.queriesRowMajor = rowMajor;
                c.data = Components::Signed;
                expectRight(c, 2);
            }
        }
    }
    MetricCase c = base();
    c.d = 16;
    c.n = 301;
    c.q = 40;
    expectRight(c, 2);
    c.data = Components::Special;
    expectRight(c, 2);
}

} // namespace
} // namespace faiss_bits::test
