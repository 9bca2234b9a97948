/// GpuIndexBitsFlat and bfKnnBits by the metrics beyond L2 and inner product.

#include <cmath>

#include <faiss/gpu/GpuDistance.h>

#include "faiss_bits/flat/GpuBitsDistance.h"
#include "kernels/knn/ErrorBound.h"
#include "tests/common/MetricNames.h"
#include "tests/flat/IndexHarness.h"
#include "tests/knn/MetricReference.h"

namespace faiss_bits::test {
namespace {

using faiss::gpu::GpuDistanceParams;

struct FaissMetric {
    faiss::MetricType type;
    Metric ours;
    float arg = 0;
};

template <class Type>
std::vector<FaissMetric> faissMetrics() {
    std::vector<FaissMetric> list = {
            {faiss::METRIC_L1, Metric::L1},
            {faiss::METRIC_Linf, Metric::Linf},
            {faiss::METRIC_Lp, Metric::Lp, 1.5f},
            {faiss::METRIC_Lp, Metric::Lp, 3.f},
            {faiss::METRIC_Lp, Metric::Lp, 2.7f},
            {faiss::METRIC_Canberra, Metric::Canberra},
            {faiss::METRIC_BrayCurtis, Metric::BrayCurtis},
            {faiss::METRIC_JensenShannon, Metric::JensenShannon}};
    if constexpr (requires { Type::METRIC_Jaccard; }) {
        list.push_back({Type::METRIC_Jaccard, Metric::Jaccard});
    }
    return list;
}

const std::vector<FaissMetric> kMetrics = faissMetrics<faiss::MetricType>();

/// Components in [0, 1), one in four 0, exact in `type`.
std::vector<float> components(
        int64_t count,
        uint32_t seed,
        DataType type = DataType::Float32) {
    std::mt19937 random(seed);
    std::vector<float> x(count);
    for (float& one : x) {
        one = random() % 4 == 0
                ? 0.f
                : std::uniform_real_distribution<float>(0.f, 1.f)(random);
    }
    roundAllTo(type, x);
    return x;
}

/// Distances near those of the ids, in order, and no nearer vector left out.
::testing::AssertionResult areNearest(
        const FaissMetric& metric,
        int d,
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        int k,
        const SearchOutput& out) {
    const int64_t n = int64_t(vectors.size()) / d;
    const int64_t q = int64_t(queries.size()) / d;
    const bool largest = isSimilarity(metric.ours);
    for (int64_t i = 0; i < q; ++i) {
        std::vector<double> truth(n);
        double most = 0;
        for (int64_t v = 0; v < n; ++v) {
            truth[v] = referenceDistance(
                    metric.ours,
                    metric.arg,
                    vectors.data() + v * d,
                    queries.data() + i * d,
                    d);
            const ErrorBound bound =
                    errorBound(metric.ours, metric.arg, d, d, d);
            most = std::max(
                    most, bound.relative * std::abs(truth[v]) + bound.absolute);
        }
        std::vector<double> sorted = truth;
        std::sort(sorted.begin(), sorted.end());
        if (largest) {
            std::reverse(sorted.begin(), sorted.end());
        }
        std::vector<bool> seen(n);
        for (int j = 0; j < k; ++j) {
            const int64_t id = out.labels[i * k + j];
            const float distance = out.distances[i * k + j];
            if (id < 0 || id >= n || seen[id] ||
                !(std::abs(distance - truth[id]) <= most) ||
                !(std::abs(distance - sorted[j]) <= 2 * most)) {
                return ::testing::AssertionFailure()
                        << metricName(metric.ours) << " p=" << metric.arg
                        << " d=" << d << " query " << i << " place " << j
                        << ": (" << distance << ", " << id << "), expected "
                        << sorted[j] << " +- " << most;
            }
            seen[id] = true;
        }
    }
    return ::testing::AssertionSuccess();
}

class FlatMetricsIndex : public GpuTest {};

TEST_F(FlatMetricsIndex, SmallSearch) {
    for (const FaissMetric& metric : kMetrics) {
        for (DataType storage : kStorages) {
            for (int d : {3, 40}) {
                const auto vectors = components(700 * d, 1, storage);
                GpuIndexBitsFlat index(
                        sharedResources(), d, metric.type, configOf(storage));
                index.metric_arg = metric.arg;
                index.add(700, vectors.data());
                for (int64_t q : {1, 9, 140}) {
                    const auto queries = components(q * d, 2, storage);
                    EXPECT_TRUE(areNearest(
                            metric,
                            d,
                            vectors,
                            queries,
                            20,
                            searchOnHost(index, queries, 20)));
                }
            }
        }
    }
}

TEST_F(FlatMetricsIndex, SmallCopiesKeepTheArgument) {
    const int d = 6;
    const auto vectors = components(300 * d, 1);
    const auto queries = components(5 * d, 2);
    for (const FaissMetric& metric : kMetrics) {
        faiss::IndexFlat cpu(d, metric.type);
        cpu.metric_arg = metric.arg;
        cpu.add(300, vectors.data());
        GpuIndexBitsFlat index(sharedResources(), 99, faiss::METRIC_L2);
        index.copyFrom(&cpu);
        EXPECT_EQ(index.metric_type, metric.type);
        EXPECT_EQ(index.metric_arg, metric.arg);
        const auto found = searchOnHost(index, queries, 10);
        EXPECT_TRUE(areNearest(metric, d, vectors, queries, 10, found));

        const GpuIndexBitsFlat made(sharedResources(), &cpu);
        EXPECT_TRUE(sameOutput(found, searchOnHost(made, queries, 10)));

        faiss::IndexFlat back(1, faiss::METRIC_L2);
        index.copyTo(&back);
        EXPECT_EQ(back.metric_type, metric.type);
        EXPECT_EQ(back.metric_arg, metric.arg);
    }
}

/// What is known of the vectors from one search to the next follows them,
/// whatever changes them: the same bits as an index that has just been made.
TEST_F(FlatMetricsIndex, VectorsThatChange) {
    const int d = 6;
    const int64_t n = 300;
    const auto queries = components(40 * d, 2);
    const auto usual = components(n * d, 1);
    auto large = components(n * d, 3);
    for (float& x : large) {
        x *= 2e37f; // out of the range of every fast arithmetic
    }
    const auto join = [](std::vector<float> a, const std::vector<float>& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    };
    for (const FaissMetric& metric : kMetrics) {
        for (DataType storage : {DataType::Float32, DataType::BFloat16}) {
            const auto add = [&](GpuIndexBitsFlat& index,
                                 const std::vector<float>& x) {
                index.add(int64_t(x.size()) / d, x.data());
            };
            GpuIndexBitsFlat index(
                    sharedResources(), d, metric.type, configOf(storage));
            index.metric_arg = metric.arg;
            const auto expectFresh = [&](const std::vector<float>& x) {
                GpuIndexBitsFlat fresh(
                        sharedResources(),
                        d,
                        index.metric_type,
                        configOf(storage));
                fresh.metric_arg = index.metric_arg;
                add(fresh, x);
                for (int again = 0; again < 2; ++again) {
                    EXPECT_TRUE(sameOutput(
                            searchOnHost(index, queries, 20),
                            searchOnHost(fresh, queries, 20)))
                            << metricName(metric.ours) << " p=" << metric.arg
                            << " storage " << int(storage);
                }
            };
            add(index, usual);
            expectFresh(usual);
            add(index, large);
            expectFresh(join(usual, large));
            index.reserve(5000);
            expectFresh(join(usual, large));
            index.reset();
            add(index, join(large, usual)); // as many as before
            expectFresh(join(large, usual));

            faiss::IndexFlat cpu(d, metric.type);
            cpu.metric_arg = metric.arg;
            cpu.add(n, usual.data());
            cpu.add(n, usual.data());
            index.copyFrom(&cpu);
            expectFresh(join(usual, usual));
            if (storage == DataType::Float32) {
                cpu.reset();
                cpu.add(n, usual.data());
                cpu.add(n, large.data());
                index.GpuIndexFlat::copyFrom(&cpu);
                expectFresh(join(usual, large));
                // As many vectors as at the last search that knew them.
                index.copyFrom(&cpu);
                expectFresh(join(usual, large));
                cpu.reset();
                cpu.add(n, large.data());
                index.GpuIndexFlat::copyFrom(&cpu);
                add(index, usual);
                expectFresh(join(large, usual));
            }
            for (const FaissMetric& other : kMetrics) {
                index.metric_type = other.type;
                index.metric_arg = other.arg;
                expectFresh(
                        storage == DataType::Float32 ? join(large, usual)
                                                     : join(usual, usual));
            }
        }
    }
}

TEST_F(FlatMetricsIndex, SmallMissingArgument) {
    const std::vector<float> x(8, 1.f);
    GpuIndexBitsFlat index(sharedResources(), 4, faiss::METRIC_Lp);
    index.add(2, x.data());
    for (float arg : {0.f, -1.f, INFINITY, NAN}) {
        index.metric_arg = arg;
        EXPECT_TRUE(faissThrowsNaming(
                [&] { searchOnHost(index, x, 1); }, "metric_arg"));
    }
    index.metric_arg = 3;
    EXPECT_EQ(searchOnHost(index, x, 1).labels[0], 0);
}

/// Few vectors: empty places as the metric has them.
TEST_F(FlatMetricsIndex, SmallEmptyPlaces) {
    const std::vector<float> x(8, 1.f);
    for (const FaissMetric& metric : kMetrics) {
        GpuIndexBitsFlat index(sharedResources(), 4, metric.type);
        index.metric_arg = metric.arg;
        index.add(2, x.data());
        const auto out = searchOnHost(index, {1, 1, 1, 1}, 3);
        const float equal = isSimilarity(metric.ours) ? 1.f : 0.f;
        const float empty = maxOf(DataType::Float32);
        EXPECT_EQ(out.labels, (std::vector<idx_t>{0, 1, -1}));
        EXPECT_NEAR(out.distances[1], equal, 1e-5) << metricName(metric.ours);
        EXPECT_EQ(out.distances[2], isSimilarity(metric.ours) ? -empty : empty);
    }
}

class BfKnnMetrics : public GpuTest {
   protected:
    static GpuDistanceParams arguments(
            int d,
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            int k,
            SearchOutput& out) {
        GpuDistanceParams args;
        args.k = k;
        args.dims = d;
        args.vectors = vectors.data();
        args.numVectors = int64_t(vectors.size()) / d;
        args.queries = queries.data();
        args.numQueries = int64_t(queries.size()) / d;
        const size_t places = args.numQueries * (k == -1 ? args.numVectors : k);
        out.distances.resize(places);
        out.labels.resize(places);
        args.outDistances = out.distances.data();
        args.outIndices = out.labels.data();
        return args;
    }
};

TEST_F(BfKnnMetrics, SmallEveryMetric) {
    const int d = 10;
    const auto vectors = components(500 * d, 1);
    const auto queries = components(30 * d, 2);
    for (const FaissMetric& metric : kMetrics) {
        SearchOutput out;
        auto args = arguments(d, vectors, queries, 15, out);
        args.metric = metric.type;
        args.metricArg = metric.arg;
        gpu::bfKnnBits(sharedResources(), args);
        EXPECT_TRUE(areNearest(metric, d, vectors, queries, 15, out));
    }
}

/// Those that FAISS has no number for.
TEST_F(BfKnnMetrics, SmallMetricsOfOurs) {
    const int d = 10;
    const auto vectors = components(500 * d, 1);
    for (Metric ours : {Metric::Cosine, Metric::Jaccard}) {
        for (int64_t q : {3, 30}) {
            const auto queries = components(q * d, 2);
            SearchOutput out;
            const auto args = arguments(d, vectors, queries, 15, out);
            gpu::bfKnnBits(sharedResources(), args, ours);
            EXPECT_TRUE(areNearest(
                    {faiss::METRIC_L2, ours}, d, vectors, queries, 15, out));
        }
    }
}

/// In either mode what an index finds in it.
TEST_F(BfKnnMetrics, SmallModes) {
    const int d = 10;
    const auto vectors = components(500 * d, 1);
    auto metrics = kMetrics;
    metrics.push_back({faiss::METRIC_L2, Metric::L2});
    metrics.push_back({faiss::METRIC_INNER_PRODUCT, Metric::InnerProduct});
    for (const FaissMetric& metric : metrics) {
        GpuIndexBitsFlat index(sharedResources(), d, metric.type);
        index.metric_arg = metric.arg;
        index.add(500, vectors.data());
        for (int64_t q : {3, 30}) {
            const auto queries = components(q * d, 2);
            SearchOutput out;
            auto args = arguments(d, vectors, queries, 15, out);
            args.metric = metric.type;
            args.metricArg = metric.arg;
            const auto expectAsIndex = [&](SearchMode mode) {
                index.search_mode = mode;
                EXPECT_TRUE(sameOutput(out, searchOnHost(index, queries, 15)))
                        << metricName(metric.ours) << " mode " << int(mode);
            };
            gpu::bfKnnBits(sharedResources(), args);
            expectAsIndex(SearchMode::Certified);
            for (auto mode :
                 {SearchMode::Plain, SearchMode::Fast, SearchMode::Certified}) {
                gpu::bfKnnBits(sharedResources(), args, mode);
                expectAsIndex(mode);
                gpu::bfKnnBits(sharedResources(), args, metric.ours, mode);
                expectAsIndex(mode);
            }
            EXPECT_TRUE(faissThrowsNaming(
                    [&] {
                        gpu::bfKnnBits(sharedResources(), args, SearchMode(7));
                    },
                    "mode",
                    "7"));
        }
    }
}

TEST_F(BfKnnMetrics, SmallAllDistances) {
    const int d = 7;
    const auto vectors = components(261 * d, 1);
    const auto queries = components(19 * d, 2);
    for (const FaissMetric& metric : kMetrics) {
        SearchOutput out;
        auto args = arguments(d, vectors, queries, -1, out);
        args.metric = metric.type;
        args.metricArg = metric.arg;
        gpu::bfKnnBits(sharedResources(), args);
        const ErrorBound bound = errorBound(metric.ours, metric.arg, d, d, d);
        for (int64_t i = 0; i < 19; ++i) {
            for (int64_t v = 0; v < 261; ++v) {
                const double want = referenceDistance(
                        metric.ours,
                        metric.arg,
                        vectors.data() + v * d,
                        queries.data() + i * d,
                        d);
                ASSERT_NEAR(
                        out.distances[i * 261 + v],
                        want,
                        bound.relative * std::abs(want) + bound.absolute)
                        << metricName(metric.ours);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
