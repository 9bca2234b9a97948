#pragma once

#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/knn/ErrorBound.h"
#include "tests/common/MetricNames.h"
#include "tests/knn/KnnHarness.h"
#include "tests/knn/MetricReference.h"

/// Searches by the metrics beyond L2 and inner product: all their distances
/// against the reference, within the proven bound, and what a search returns
/// against those distances, bit for bit.
namespace faiss_bits::test {

struct MetricAndPower {
    Metric metric;
    float p = 0;
};

/// Every metric, and every kernel of Lp.
inline const std::vector<MetricAndPower> kManyMetrics = {
        {Metric::L1},
        {Metric::Linf},
        {Metric::Lp, 0.5f},
        {Metric::Lp, 1.0f},
        {Metric::Lp, 1.5f},
        {Metric::Lp, 2.0f},
        {Metric::Lp, 3.0f},
        {Metric::Lp, 4.0f},
        {Metric::Lp, 0.3f},
        {Metric::Lp, 2.5f},
        {Metric::Lp, 5.0f},
        {Metric::Canberra},
        {Metric::BrayCurtis},
        {Metric::JensenShannon},
        {Metric::Jaccard},
        {Metric::Cosine}};

/// What the components are.
enum class Components {
    Positive,  ///< in [0, 1), one in five 0: what every metric is for
    Signed,    ///< in [-1, 1), one in five 0
    Equal,     ///< all 1
    Few,       ///< 0, 1 or 2: exact sums, and many ties
    Zeros,     ///< most vectors and queries all zeros
    Special,   ///< positive, with NaN and infinities in some vectors
    Tiny,      ///< some below every range that fast arithmetic has, denormals
    Huge,      ///< some near the end of float32's range
    Far,       ///< close together, far from the origin
    Histograms ///< exponentials over their sum: a few large, most tiny
};

inline const std::vector<Components> kManyComponents = {
        Components::Positive,
        Components::Signed,
        Components::Equal,
        Components::Few,
        Components::Zeros,
        Components::Special,
        Components::Tiny,
        Components::Huge,
        Components::Far,
        Components::Histograms};

inline void fillVector(Components kind, float* v, int d, std::mt19937& random) {
    const auto uniform = [&](double low, double high) {
        return float(std::uniform_real_distribution<double>(low, high)(random));
    };
    const auto oneIn = [&](unsigned n) { return random() % n == 0; };
    const bool isZero = kind == Components::Zeros && !oneIn(3);
    double sum = 0;
    for (int i = 0; i < d; ++i) {
        switch (kind) {
            case Components::Signed:
                v[i] = oneIn(5) ? 0.f : uniform(-1, 1);
                break;
            case Components::Equal:
                v[i] = 1.f;
                break;
            case Components::Few:
                v[i] = float(random() % 3);
                break;
            case Components::Tiny:
                v[i] = oneIn(2)
                        ? uniform(0, 1)
                        : std::ldexp(uniform(1, 2), -30 - int(random() % 119));
                break;
            case Components::Huge:
                v[i] = oneIn(2) ? uniform(0, 1)
                                : std::ldexp(uniform(1, 2), 40 + random() % 87);
                break;
            case Components::Far:
                v[i] = 1000.f + uniform(-1, 1);
                break;
            case Components::Histograms:
                v[i] = std::exp(20 * uniform(-1, 1));
                sum += v[i];
                break;
            default:
                v[i] = oneIn(5) || isZero ? 0.f : uniform(0, 1);
        }
    }
    if (kind == Components::Histograms) {
        for (int i = 0; i < d; ++i) {
            v[i] = float(v[i] / sum);
        }
    }
}

struct MetricCase {
    MetricAndPower metric = {Metric::L1};
    DataType dataType = DataType::Float32;
    int64_t n = 300;
    int64_t q = 10;
    int d = 8;
    int k = 10;
    Components data = Components::Positive;
    bool vectorsRowMajor = true;
    bool queriesRowMajor = true;
    size_t shift = 0; ///< elements that the base pointers are off
    size_t maxScratch = kRoomyScratch;
    uint32_t seed = 1;

    std::string describe() const {
        std::ostringstream text;
        text << metricName(metric.metric);
        if (metric.metric == Metric::Lp) {
            text << " p=" << metric.p;
        }
        text << " " << nameOf(dataType) << " n=" << n << " q=" << q
             << " d=" << d << " k=" << k << " data=" << int(data)
             << (vectorsRowMajor ? "" : " column-major vectors")
             << (queriesRowMajor ? "" : " column-major queries")
             << " shift=" << shift << " maxScratch=" << maxScratch
             << " seed=" << seed;
        return text.str();
    }
};

class MetricData {
   public:
    explicit MetricData(const MetricCase& c) : c_(c) {
        std::mt19937 random(c.seed);
        vectors_ = make(c.n, false, random);
        queries_ = make(c.q, true, random);
        deviceVectors_ = upload(vectors_, c.n, c.vectorsRowMajor);
        deviceQueries_ = upload(queries_, c.q, c.queriesRowMajor);
    }

    MetricCase& options() {
        return c_;
    }

    FlatKnnProblem problem() const {
        FlatKnnProblem p;
        p.metric = c_.metric.metric;
        p.mode = SearchMode::Plain;
        p.metricArg = c_.metric.p;
        p.dataType = c_.dataType;
        p.numVectors = c_.n;
        p.numQueries = c_.q;
        p.d = c_.d;
        p.k = c_.k;
        p.vectors = deviceVectors_.data();
        p.vectorsRowMajor = c_.vectorsRowMajor;
        p.queries = deviceQueries_.data();
        p.queriesRowMajor = c_.queriesRowMajor;
        p.device.multiprocessors = multiprocessorCount();
        return p;
    }

    /// [q, n], by runAllDistances.
    std::vector<float> allDistances(cublasHandle_t handle) const {
        FlatKnnProblem p = problem();
        DeviceBuffer<float> out(c_.q * c_.n, 0xA5);
        p.outDistances = out.data();
        DeviceBuffer<uint8_t> scratch(allDistancesWorkspaceBytes(p), 0xFF);
        runAllDistances(p, {scratch.data(), scratch.size()}, handle, nullptr);
        BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
        return out.download();
    }

    /// In pages of so many queries; 0: in one. Row-major queries only.
    KnnResult search(cublasHandle_t handle, int64_t page = 0) const {
        DeviceBuffer<float> outDistances(c_.q * c_.k, 0xA5);
        DeviceBuffer<int64_t> outIds(c_.q * c_.k, 0xA5);
        const int64_t step = page == 0 ? c_.q : page;
        for (int64_t first = 0; first < c_.q; first += step) {
            FlatKnnProblem p = problem();
            p.batchQueries = c_.q;
            p.numQueries = std::min(step, c_.q - first);
            p.queries =
                    deviceQueries_.data() + first * c_.d * sizeOf(c_.dataType);
            p.outDistances = outDistances.data() + first * c_.k;
            p.outIds = outIds.data() + first * c_.k;
            DeviceBuffer<uint8_t> scratch(
                    flatKnnWorkspaceBytes(p, c_.maxScratch), 0xFF);
            runFlatKnn(p, {scratch.data(), scratch.size()}, handle, nullptr);
            BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
        }
        return {outDistances.download(), outIds.download()};
    }

    /// Every distance within its bound of the reference, for at most `most`
    /// queries. `worst` becomes the largest error as a part of its bound.
    ::testing::AssertionResult withinBounds(
            const std::vector<float>& all,
            int64_t most,
            double* worst = nullptr) const {
        double vectorSum = 0;
        for (int64_t v = 0; v < c_.n; ++v) {
            vectorSum = std::max(vectorSum, sumOfSizes(vector(v), c_.d));
        }
        const int64_t count = std::min(most, c_.q);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t q = count == 1 ? 0 : i * (c_.q - 1) / (count - 1);
            const ErrorBound bound = errorBound(
                    c_.metric.metric,
                    c_.metric.p,
                    c_.d,
                    vectorSum,
                    sumOfSizes(query(q), c_.d));
            for (int64_t v = 0; v < c_.n; ++v) {
                const double c = referenceDistance(
                        c_.metric.metric,
                        c_.metric.p,
                        vector(v),
                        query(q),
                        c_.d);
                const double a = all[q * c_.n + v];
                const double most = std::isinf(bound.relative)
                        ? HUGE_VAL // also where c is zero
                        : bound.relative * std::abs(c) + bound.absolute;
                if (!isClose(a, c, most)) {
                    return ::testing::AssertionFailure()
                            << "query " << q << ", vector " << v << ": " << a
                            << ", but the reference is " << c << " +- " << most
                            << "\n  " << c_.describe();
                }
                if (worst && std::isfinite(a) && most > 0) {
                    *worst = std::max(*worst, std::abs(a - c) / most);
                }
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// The result is the best of these distances, in order.
    ::testing::AssertionResult isBestOf(
            const std::vector<float>& all,
            const KnnResult& result) const {
        const bool largest = isSimilarity(c_.metric.metric);
        const float empty =
                largest ? -maxOf(DataType::Float32) : maxOf(DataType::Float32);
        for (int64_t q = 0; q < c_.q; ++q) {
            const auto want = topKOfRow(
                    all.data() + q * c_.n,
                    c_.n,
                    nullptr,
                    0,
                    c_.k,
                    largest,
                    true);
            for (int64_t i = 0; i < c_.k; ++i) {
                const bool filled = i < int64_t(want.size());
                const float distance = filled ? float(want[i].key) : empty;
                const int64_t id = filled ? want[i].id : -1;
                const int64_t at = q * c_.k + i;
                if (result.ids[at] != id || result.distances[at] != distance) {
                    return ::testing::AssertionFailure()
                            << "query " << q << ", place " << i << ": ("
                            << result.distances[at] << ", " << result.ids[at]
                            << "), expected (" << distance << ", " << id
                            << ")\n  " << c_.describe();
                }
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// Products of 16-bit components by cuBLAS may have other bits in a matrix
    /// of another alignment, and so may those with a single vector.
    bool bitsAreFixed() const {
        return c_.metric.metric != Metric::Cosine ||
                (c_.dataType == DataType::Float32 && c_.n > 1);
    }

   private:
    /// Where float32 sums leave their range, there is no number to compare.
    bool isClose(double a, double c, double most) const {
        if (std::isnan(c)) {
            return std::isnan(a);
        }
        if (!std::isfinite(a)) {
            return c_.data == Components::Huge || std::isinf(c) ||
                    c_.data == Components::Special;
        }
        return std::abs(a - c) <= most;
    }

    std::vector<float> make(
            int64_t count,
            bool areQueries,
            std::mt19937& random) const {
        const float odd[] = {NAN, INFINITY, -INFINITY};
        std::vector<float> values(count * c_.d);
        for (int64_t i = 0; i < count; ++i) {
            float* v = values.data() + i * c_.d;
            fillVector(c_.data, v, c_.d, random);
            if (c_.data == Components::Special && !areQueries &&
                random() % 3 == 0) {
                v[random() % c_.d] = odd[random() % 3];
            }
        }
        roundAllTo(c_.dataType, values);
        return values;
    }

    DeviceBuffer<uint8_t> upload(
            const std::vector<float>& values,
            int64_t count,
            bool rowMajor) const {
        return DeviceBuffer<uint8_t>(
                packAs(c_.dataType,
                       rowMajor ? values : transposed(values, count, c_.d)),
                0xFF,
                c_.shift * sizeOf(c_.dataType));
    }

    const float* vector(int64_t v) const {
        return vectors_.data() + v * c_.d;
    }
    const float* query(int64_t q) const {
        return queries_.data() + q * c_.d;
    }

    MetricCase c_;
    std::vector<float> vectors_; // [n, d]
    std::vector<float> queries_; // [q, d]
    DeviceBuffer<uint8_t> deviceVectors_;
    DeviceBuffer<uint8_t> deviceQueries_;
};

class FlatMetricTest : public FlatKnnTest {
   protected:
    /// Distances within their bounds, and the search the best of them.
    void expectRight(const MetricCase& c, int64_t mostQueries = 6) {
        SCOPED_TRACE(c.describe());
        const MetricData data(c);
        const std::vector<float> all = data.allDistances(handle());
        ASSERT_TRUE(data.withinBounds(all, mostQueries));
        if (data.bitsAreFixed()) {
            ASSERT_TRUE(data.isBestOf(all, data.search(handle())));
        } else {
            (void)data.search(handle());
        }
    }
};

} // namespace faiss_bits::test
