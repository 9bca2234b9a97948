/// GpuIndexBitsListOfClusters and GpuIndexBitsSSS.

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <faiss/gpu/StandardGpuResources.h>

#include "faiss_bits/flat/SearchParametersBitsFlat.h"
#include "faiss_bits/metric_space/GpuIndexBitsListOfClusters.h"
#include "faiss_bits/metric_space/GpuIndexBitsSSS.h"
#include "faiss_bits/metric_space/IndexListOfClusters.h"
#include "faiss_bits/metric_space/IndexSSS.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/metric_space/MetricIndexSuite.h"

namespace faiss_bits::test {
namespace {

faiss::gpu::StandardGpuResources& resources() {
    static faiss::gpu::StandardGpuResources* shared = [] {
        auto* made = new faiss::gpu::StandardGpuResources;
        made->setTempMemory(64 << 20);
        return made;
    }();
    return *shared;
}

struct GpuKind {
    static const char* name() {
        return "gpu_";
    }
    static std::unique_ptr<gpu::GpuIndexBitsListOfClusters> list(
            int d,
            faiss::MetricType metric,
            int bucketSize) {
        return std::make_unique<gpu::GpuIndexBitsListOfClusters>(
                &resources(), d, metric, bucketSize);
    }
    static std::unique_ptr<gpu::GpuIndexBitsSSS> sss(
            int d,
            faiss::MetricType metric,
            double alpha) {
        return std::make_unique<gpu::GpuIndexBitsSSS>(
                &resources(), d, metric, alpha);
    }
};

class GpuMetricIndexes : public GpuTest {};

using Suite = MetricIndexSuite<GpuKind>;

TEST_F(GpuMetricIndexes, AnswersAreThoseOfBruteForce) {
    Suite::answers();
}

TEST_F(GpuMetricIndexes, RangesOnTheDeviceAreThoseOfTheHost) {
    const int d = 3;
    const idx_t n = 3000;
    const idx_t q = 300;
    std::mt19937 random(1);
    std::vector<float> x(n * d);
    for (float& one : x) {
        one = float(random() % 1000) / 1000;
    }
    const auto check = [&](gpu::GpuIndexBitsMetricSpace& index) {
        index.add(n, x.data());
        for (const float radius : {-1.0f, 0.003f, 10.0f}) {
            faiss::RangeSearchResult wanted(q);
            index.range_search(q, x.data(), radius, &wanted);
            gpu::GpuRangeResult found;
            index.rangeSearchOnDevice(q, x.data(), radius, found);
            ASSERT_EQ(
                    std::vector<size_t>(found.lims.begin(), found.lims.end()),
                    std::vector<size_t>(wanted.lims, wanted.lims + q + 1));
            const size_t total = wanted.lims[q];
            std::vector<float> distances(total);
            std::vector<idx_t> labels(total);
            found.copyTo(distances.data(), labels.data(), nullptr);
            EXPECT_TRUE(
                    std::equal(labels.begin(), labels.end(), wanted.labels));
            EXPECT_TRUE(std::equal(
                    distances.begin(), distances.end(), wanted.distances));
            for (const size_t most : {total, total + 1}) {
                gpu::SearchParametersBitsFlat params;
                params.max_results = most;
                gpu::GpuRangeResult limited;
                index.rangeSearchOnDevice(
                        q, x.data(), radius, limited, &params);
                EXPECT_EQ(limited.lims, found.lims);
            }
            if (total < 2) {
                continue;
            }
            for (const size_t most : {size_t(1), total - 1}) {
                gpu::SearchParametersBitsFlat params;
                params.max_results = most;
                const std::string text =
                        "max_results = " + std::to_string(most) + ", but " +
                        std::to_string(total) + " results";
                gpu::GpuRangeResult limited;
                expectFaissError(
                        [&] {
                            index.rangeSearchOnDevice(
                                    q, x.data(), radius, limited, &params);
                        },
                        text);
                faiss::RangeSearchResult host(q);
                expectFaissError(
                        [&] {
                            index.range_search(
                                    q, x.data(), radius, &host, &params);
                        },
                        text);
            }
        }
        gpu::GpuRangeResult none;
        index.rangeSearchOnDevice(0, nullptr, 1.0f, none);
        EXPECT_EQ(none.lims, std::vector<idx_t>(1, 0));
        expectFaissError(
                [&] { index.rangeSearchOnDevice(1, nullptr, 1.0f, none); },
                "x is a null");
        expectFaissError(
                [&] { index.rangeSearchOnDevice(1, x.data(), NAN, none); },
                "radius is NaN");
        expectFaissError(
                [&] { index.rangeSearchOnDevice(-1, x.data(), 1, none); },
                "n = -1");
        const auto refuses = [&](const gpu::SearchParametersBitsFlat& params,
                                 const char* text) {
            expectFaissError(
                    [&] {
                        index.rangeSearchOnDevice(
                                1, x.data(), 1, none, &params);
                    },
                    text);
            faiss::RangeSearchResult host(1);
            expectFaissError(
                    [&] { index.range_search(1, x.data(), 1, &host, &params); },
                    text);
        };
        gpu::SearchParametersBitsFlat params;
        params.max_results = -1;
        refuses(params, "max_results = -1");
        params.max_results = 0;
        params.resources = resources().getResources();
        refuses(params, "params->resources");
        params.resources.reset();
        faiss::IDSelectorRange some(0, 5);
        params.sel = &some;
        refuses(params, "params->sel");
    };
    check(*GpuKind::list(d, faiss::METRIC_L2, 64));
    check(*GpuKind::sss(d, faiss::METRIC_L1, 0.66));
}

TEST_F(GpuMetricIndexes, LifeCycle) {
    Suite::lifeCycle();
}

TEST_F(GpuMetricIndexes, BadArgumentsAreNamed) {
    Suite::badArguments();
    expectFaissError(
            [] { gpu::GpuIndexBitsSSS(nullptr, 4); }, "provider is a null");
    expectFaissError(
            [] {
                gpu::GpuIndexBitsSSS(
                        &resources(), static_cast<const IndexSSS*>(nullptr));
            },
            "index is a null");
    faiss::gpu::GpuIndexConfig config;
    config.device = 99;
    expectFaissError(
            [&] {
                gpu::GpuIndexBitsListOfClusters(
                        &resources(), 4, faiss::METRIC_L2, 64, 1, config);
            },
            "device = 99");
    const auto index = GpuKind::list(2, faiss::METRIC_L2, 4);
    const float x[2] = {};
    const idx_t id = 7;
    expectFaissError([&] { index->add_with_ids(1, x, &id); }, "ids");
}

TEST_F(GpuMetricIndexes, Files) {
    Suite::files();
}

TEST_F(GpuMetricIndexes, QueryMajorHasTheSameAnswers) {
    for (const MetricCase& c : metricCases(Metric::L2, 300, 5)) {
        const auto list = GpuKind::list(5, faiss::METRIC_L2, 16);
        list->add(c.n(), c.vectors.data());
        list->query_major = true;
        expectIndexAnswers(*list, c);
        const auto sss = GpuKind::sss(5, faiss::METRIC_L2, 0.3);
        sss->query_major = true;
        sss->add(c.n(), c.vectors.data());
        expectIndexAnswers(*sss, c);
    }
}

TEST_F(GpuMetricIndexes, CopiesFromAndToTheCpu) {
    const MetricCase c = metricCases(Metric::Linf, 200, 4)[1];
    IndexListOfClusters cpu(4, faiss::METRIC_Linf, 9);
    cpu.add(c.n(), c.vectors.data());
    for (const bool isBuilt : {false, true}) {
        if (isBuilt) {
            cpu.build();
        }
        gpu::GpuIndexBitsListOfClusters onGpu(&resources(), &cpu);
        EXPECT_EQ(onGpu.isBuilt(), isBuilt);
        EXPECT_EQ(onGpu.bucketSize(), 9);
        expectIndexAnswers(onGpu, c);
        IndexListOfClusters back(2);
        onGpu.copyTo(&back);
        EXPECT_TRUE(back.isBuilt());
        cpu.build();
        EXPECT_EQ(back.numClusters(), cpu.numClusters());
        expectIndexAnswers(back, c);
    }
    IndexSSS sss(4, faiss::METRIC_Linf, 0.3);
    sss.add(c.n(), c.vectors.data());
    gpu::GpuIndexBitsSSS sssOnGpu(&resources(), &sss);
    expectIndexAnswers(sssOnGpu, c);
    sssOnGpu.copyTo(&sss);
    EXPECT_TRUE(sss.isBuilt());
    expectIndexAnswers(sss, c);
}

TEST_F(GpuMetricIndexes, ArraysOnTheDevice) {
    const MetricCase c = metricCases(Metric::L2, 200, 4)[1];
    const DeviceBuffer<float> vectors(c.vectors);
    const DeviceBuffer<float> queries(c.queries);
    const DeviceBuffer<float> distances(c.numQueries() * 5);
    const DeviceBuffer<idx_t> labels(c.numQueries() * 5);
    const auto index = GpuKind::list(4, faiss::METRIC_L2, 16);
    index->add(c.n(), vectors.data());
    index->search(
            c.numQueries(), queries.data(), 5, distances.data(), labels.data());
    KnnAnswer got(c, 5);
    got.distances = distances.download();
    got.ids = labels.download();
    EXPECT_TRUE(isSameKnn(c, 5, got));
    faiss::RangeSearchResult result(c.numQueries());
    index->range_search(c.numQueries(), queries.data(), 1e7f, &result);
    EXPECT_EQ(
            idx_t(result.lims[c.numQueries()]),
            plainRange(c, 1e7f).limits.back());
    // Vectors of what was found, and of nothing.
    std::vector<float> rows(c.numQueries() * 5 * c.d);
    index->search_and_reconstruct(
            c.numQueries(),
            c.queries.data(),
            5,
            got.distances.data(),
            got.ids.data(),
            rows.data());
    for (idx_t i = 0; i < c.numQueries() * 5; ++i) {
        EXPECT_EQ(
                0,
                std::memcmp(
                        &rows[i * c.d],
                        &c.vectors[got.ids[i] * c.d],
                        c.d * sizeof(float)));
    }
    std::vector<idx_t> assigned(c.numQueries());
    index->assign(c.numQueries(), c.queries.data(), assigned.data());
    for (idx_t q = 0; q < c.numQueries(); ++q) {
        EXPECT_EQ(assigned[q], got.ids[q * 5]);
    }
    const idx_t keys[] = {3, -1};
    std::vector<float> two(2 * c.d, 1.0f);
    index->reconstruct_batch(2, keys, two.data());
    EXPECT_EQ(two[0], c.vectors[3 * c.d]);
    EXPECT_EQ(two[c.d], 0.0f);
    const idx_t bad[] = {200};
    expectFaissError(
            [&] { index->reconstruct_batch(1, bad, two.data()); }, "keys[0]");
}

} // namespace
} // namespace faiss_bits::test
