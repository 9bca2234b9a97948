/// Range searches of GpuIndexBitsFlat in few dimensions, which keep boxes.

#include <random>

#include <faiss/gpu/StandardGpuResources.h>
#include <faiss/impl/IDSelector.h>

#include "kernels/range/boxes/RangeBoxes.h"
#include "tests/flat/IndexRangeHarness.h"

namespace faiss_bits::test {
namespace {

class FlatIndexBoxes : public GpuTest {};

constexpr int64_t kVectors = 66000; // boxes come from 65,536 on
constexpr int64_t kQueries = 1030;  // and with 1,024 queries

std::vector<float> uniform(int64_t rows, int d, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> values(rows * d);
    for (float& one : values) {
        one = float(random() % 1000000) / 1e6f;
    }
    return values;
}

/// An index on resources of its own, so that their memory tells what it keeps.
struct Kept {
    explicit Kept(
            int d,
            faiss::MetricType type = faiss::METRIC_L2,
            gpu::GpuIndexBitsFlatConfig config = {})
            : d(d), index(&owner, d, type, config) {
        add(kVectors, 1);
    }

    void add(int64_t n, uint32_t seed) {
        const std::vector<float> more = uniform(n, d, seed);
        vectors.insert(vectors.end(), more.begin(), more.end());
        index.add(n, more.data());
    }

    int64_t n() const {
        return int64_t(vectors.size()) / d;
    }

    /// Of the index on the device.
    size_t bytes() {
        size_t sum = 0;
        const auto info = owner.getMemoryInfo(); // of devices
        for (const auto& [name, use] : info.at(0)) {
            if (name == "FlatData") {
                sum += use.second;
            }
        }
        return sum;
    }

    /// What boxes of so many vectors take there.
    size_t boxBytes() const {
        RangeBoxesShape shape;
        shape.d = d;
        shape.n = n();
        return rangeBoxesBytes(shape);
    }

    /// Searches, and compares some queries' results with those of the host.
    void expect(
            int64_t q,
            float radius,
            const faiss::SearchParameters* params = nullptr) {
        const std::vector<float> queries = uniform(q, d, 2);
        faiss::RangeSearchResult result(q);
        index.range_search(q, queries.data(), radius, &result, params);
        gpu::GpuRangeResult onDevice;
        const DeviceBuffer<float> x(queries);
        index.rangeSearchOnDevice(q, x.data(), radius, onDevice, params);
        ASSERT_EQ(
                std::vector<size_t>(onDevice.lims.begin(), onDevice.lims.end()),
                std::vector<size_t>(result.lims, result.lims + q + 1));
        const size_t total = result.lims[q];
        const DeviceBuffer<float> distances(total);
        const DeviceBuffer<int64_t> labels(total);
        onDevice.copyTo(
                distances.data(), labels.data(), owner.getDefaultStream(0));
        EXPECT_EQ(
                labels.download(),
                std::vector<int64_t>(result.labels, result.labels + total));
        EXPECT_EQ(
                distances.download(),
                std::vector<float>(result.distances, result.distances + total));
        const Metric metric = index.metric_type == faiss::METRIC_L2 ? Metric::L2
                : index.metric_type == faiss::METRIC_L1             ? Metric::L1
                                                        : Metric::Linf;
        for (int64_t i = 0; i < q; i += std::max<int64_t>(q / 8, 1)) {
            std::vector<int64_t> wantedIds;
            std::vector<float> wanted;
            for (int64_t v = 0; v < n(); ++v) {
                const float distance = canonicalDistance(
                        metric,
                        0,
                        queries.data() + i * d,
                        vectors.data() + v * d,
                        d);
                if (distance < radius &&
                    (!params || !params->sel || params->sel->is_member(v))) {
                    wantedIds.push_back(v);
                    wanted.push_back(distance);
                }
            }
            const int64_t* ids = result.labels + result.lims[i];
            const float* found = result.distances + result.lims[i];
            const size_t size = result.lims[i + 1] - result.lims[i];
            EXPECT_EQ(std::vector<int64_t>(ids, ids + size), wantedIds) << i;
            EXPECT_EQ(std::vector<float>(found, found + size), wanted) << i;
        }
    }

    const int d;
    faiss::gpu::StandardGpuResources owner;
    gpu::GpuIndexBitsFlat index;
    std::vector<float> vectors;
};

TEST_F(FlatIndexBoxes, ComeWithQueriesAndChangeNothing) {
    for (int d = 1; d <= 4; ++d) {
        Kept kept(d);
        const size_t before = kept.bytes();
        kept.expect(5, 0.01f);
        EXPECT_EQ(kept.bytes(), before);
        kept.expect(kQueries, 0.01f);
        EXPECT_GE(kept.bytes(), before + kept.boxBytes());
        for (const float radius : {-1.0f, 0.001f, 0.3f}) {
            kept.expect(5, radius);
        }
    }
}

TEST_F(FlatIndexBoxes, ServeOtherMetrics) {
    for (const faiss::MetricType type :
         {faiss::METRIC_L1, faiss::METRIC_Linf}) {
        Kept kept(3, type);
        const size_t before = kept.bytes();
        kept.expect(kQueries, 0.1f);
        EXPECT_GE(kept.bytes(), before + kept.boxBytes());
    }
}

TEST_F(FlatIndexBoxes, GoWhenVectorsChange) {
    Kept kept(3);
    const size_t before = kept.bytes();
    kept.expect(kQueries, 0.01f);
    kept.add(1000, 3);
    EXPECT_LT(kept.bytes(), before + kept.boxBytes());
    kept.expect(5, 0.01f);
    kept.expect(kQueries, 0.01f);
    EXPECT_GE(kept.bytes(), before + kept.boxBytes());
    kept.index.truncate(kVectors - 7);
    kept.vectors.resize((kVectors - 7) * 3);
    kept.expect(kQueries, 0.01f);
    kept.index.reset();
    kept.vectors.clear();
    kept.expect(kQueries, 0.01f);
    kept.add(kVectors, 4);
    kept.expect(kQueries, 0.01f);
}

TEST_F(FlatIndexBoxes, Filters) {
    Kept kept(3);
    kept.expect(kQueries, 0.01f);
    faiss::IDSelectorRange range(100, 40000);
    faiss::SearchParameters params;
    params.sel = &range;
    kept.expect(40, 0.01f, &params);
    kept.expect(40, 4.0f, &params);
}

TEST_F(FlatIndexBoxes, NoneWhereNothingIsKept) {
    gpu::GpuIndexBitsFlatConfig config;
    config.keepSearchImage = false;
    Kept kept(3, faiss::METRIC_L2, config);
    const size_t before = kept.bytes();
    kept.expect(kQueries, 0.01f);
    EXPECT_EQ(kept.bytes(), before);
}

TEST_F(FlatIndexBoxes, LimitsNameTheTotal) {
    Kept kept(3);
    kept.expect(kQueries, 0.01f);
    const std::vector<float> queries = uniform(40, 3, 2);
    gpu::SearchParametersBitsFlat params;
    params.max_results = 10;
    gpu::GpuRangeResult result;
    try {
        kept.index.rangeSearchOnDevice(
                40, queries.data(), 0.1f, result, &params);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const faiss::FaissException& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("max_results = 10"), std::string::npos) << text;
    }
}

} // namespace
} // namespace faiss_bits::test
