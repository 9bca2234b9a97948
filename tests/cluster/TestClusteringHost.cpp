/// What a clustering does around its kernels, on streams without a GPU: the
/// same as FAISS, wherever the vectors lie and whenever the work is done; what
/// is wrong or interrupted leaves nothing behind.

#include <memory>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissException.h>

#include "faiss_bits/cluster/GpuBitsClustering.h"
#include "tests/cluster/ClusteringReference.h"
#include "tests/flat/FakeResources.h"
#include "tests/flat/HostHarness.h"

namespace faiss_bits::test {
namespace {

using fake::Schedule;
using gpu::GpuBitsClustering;

constexpr int kDim = 6;
constexpr int kClusters = 9;

struct FakeProvider : faiss::gpu::GpuResourcesProvider {
    std::shared_ptr<faiss::gpu::GpuResources> getResources() override {
        return resources;
    }
    std::shared_ptr<faiss::gpu::GpuResources> resources =
            std::make_shared<FakeResources>(0);
};

enum class Where { Pageable, Pinned, Device, Streamed };

struct Call {
    Where where = Where::Pageable;
    Schedule schedule = Schedule::Lazy;
    faiss::ClusteringParameters options;
    std::vector<float> start;
    std::vector<float> weights;
};

Clustered cluster(std::vector<float> x, Call call, int k = kClusters) {
    fake::reset(call.schedule, 5);
    for (auto* array : {&x, &call.weights}) {
        const size_t bytes = sizeof(float) * array->size();
        if (call.where == Where::Device) {
            fake::markDevice(array->data(), bytes);
        } else if (call.where == Where::Pinned) {
            fake::markPinned(array->data(), bytes);
        }
    }
    FakeProvider provider;
    GpuBitsClustering clustering(&provider, kDim, k, call.options);
    clustering.most_device_bytes = call.where == Where::Streamed ? 1 : 0;
    clustering.centroids = call.start;
    const float* weights = call.weights.empty() ? nullptr : call.weights.data();
    clustering.train(int64_t(x.size()) / kDim, x.data(), weights);
    // Nothing reads x any more.
    EXPECT_EQ(fake::hostCopies(), 0);
    fake::finishAll();
    return {clustering.centroids, clustering.iteration_stats};
}

faiss::ClusteringParameters someOptions() {
    faiss::ClusteringParameters options;
    options.niter = 4;
    options.min_points_per_centroid = 1;
    options.max_points_per_centroid = 60;
    return options;
}

Clustered byFaiss(const std::vector<float>& x, const Call& call) {
    return clusterByFaiss(
            x, kDim, kClusters, call.options, call.start, call.weights);
}

std::vector<float> smallWeights(int64_t n) {
    std::vector<float> weights(n);
    for (int64_t i = 0; i < n; ++i) {
        weights[i] = float(i % 5);
    }
    return weights;
}

TEST(ClusteringHost, AsFaissWhereverVectorsLie) {
    for (int n : {400, 900}) { // the latter is sampled
        const auto x = clusteredVectors(n, kDim, kClusters);
        for (bool weighted : {false, true}) {
            Call call;
            call.options = someOptions();
            call.weights = weighted ? smallWeights(n) : std::vector<float>();
            const auto theirs = byFaiss(x, call);
            const auto first = cluster(x, call);
            expectAlike(first, theirs);
            for (Where where :
                 {Where::Pageable,
                  Where::Pinned,
                  Where::Device,
                  Where::Streamed}) {
                for (Schedule schedule :
                     {Schedule::Lazy, Schedule::Eager, Schedule::Random}) {
                    call.where = where;
                    call.schedule = schedule;
                    EXPECT_EQ(cluster(x, call).centroids, first.centroids)
                            << n << " " << weighted << " " << int(where) << " "
                            << int(schedule);
                }
            }
        }
    }
}

TEST(ClusteringHost, OptionsAsFaiss) {
    const auto x = clusteredVectors(500, kDim, kClusters);
    const auto check = [&](auto change) {
        Call call;
        call.options = someOptions();
        change(call);
        expectAlike(cluster(x, call), byFaiss(x, call));
    };
    check([](Call& c) { c.options.niter = 0; });
    check([](Call& c) { c.options.niter = 1; });
    check([](Call& c) { c.options.spherical = true; });
    check([](Call& c) { c.options.int_centroids = true; });
    check([](Call& c) { c.options.update_index = true; });
    check([](Call& c) { c.options.seed = 77; });
    check([](Call& c) { c.options.nredo = 3; });
    check([](Call& c) {
        c.options.nredo = 3;
        c.options.niter = 0;
    });
    check([](Call& c) {
        c.options.nredo = 2;
        c.options.spherical = true;
    });
    for (int given : {1, 4, kClusters}) {
        for (bool frozen : {false, true}) {
            check([&](Call& c) {
                c.start.assign(x.begin(), x.begin() + given * kDim);
                c.options.frozen_centroids = frozen;
            });
            check([&](Call& c) {
                c.start.assign(x.begin(), x.begin() + given * kDim);
                c.options.frozen_centroids = frozen;
                c.options.nredo = 2;
                c.options.spherical = true;
            });
        }
    }
}

TEST(ClusteringHost, InitialCentroidsAreThoseOfFaiss) {
    for (int n : {10, 100, 541, 1000}) {
        const auto x = wholeVectors(n, kDim, 3);
        Call call;
        call.options = someOptions();
        call.options.niter = 0;
        EXPECT_EQ(cluster(x, call).centroids, byFaiss(x, call).centroids);
        call.where = Where::Device;
        EXPECT_EQ(cluster(x, call).centroids, byFaiss(x, call).centroids);
    }
}

TEST(ClusteringHost, EmptyClustersAreSplit) {
    const std::vector<float> x(200 * kDim, 3.0f);
    Call call;
    call.options = someOptions();
    const auto result = cluster(x, call);
    ASSERT_EQ(result.stats.size(), 4u);
    for (const auto& stats : result.stats) {
        EXPECT_EQ(stats.nsplit, kClusters - 1);
        EXPECT_DOUBLE_EQ(stats.imbalance_factor, kClusters);
    }
}

TEST(ClusteringHost, AsManyVectorsAsClusters) {
    const auto x = wholeVectors(kClusters, kDim, 1);
    for (Where where : {Where::Pageable, Where::Device}) {
        Call call;
        call.where = where;
        const auto result = cluster(x, call);
        EXPECT_EQ(result.centroids, x);
        ASSERT_EQ(result.stats.size(), 1u);
        EXPECT_EQ(result.stats[0].imbalance_factor, 1);
    }
}

TEST(ClusteringHost, RefusesOptions) {
    const auto refuses = [&](auto change, const char* name, const char* value) {
        Call call;
        call.options = someOptions();
        change(call);
        return faissThrowsNaming(
                [&] { cluster(clusteredVectors(300, kDim, 4), call); },
                name,
                value);
    };
    EXPECT_TRUE(refuses([](Call& c) { c.options.niter = -1; }, "niter", "-1"));
    EXPECT_TRUE(refuses([](Call& c) { c.options.nredo = 0; }, "nredo", "0"));
    EXPECT_TRUE(
            refuses([](Call& c) { c.options.max_points_per_centroid = 0; },
                    "max_points_per_centroid",
                    "0"));
    EXPECT_TRUE(
            refuses([](Call& c) { c.options.min_points_per_centroid = -1; },
                    "min_points_per_centroid",
                    "-1"));
    EXPECT_TRUE(
            refuses([](Call& c) { c.options.decode_block_size = 7; },
                    "decode_block_size",
                    "7"));
    EXPECT_TRUE(refuses(
            [](Call& c) { c.start.resize(kDim + 1); }, "centroids", ""));
    EXPECT_TRUE(
            refuses([](Call& c) { c.start.resize(kDim * (kClusters + 1)); },
                    "centroids",
                    ""));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { cluster(wholeVectors(8, kDim, 1), {}); }, "n", "8"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { cluster(wholeVectors(8, kDim, 1), {}, 0); }, "k", "0"));
    FakeProvider provider;
    GpuBitsClustering clustering(&provider, kDim, kClusters, someOptions());
    clustering.search_mode = SearchMode::Fast;
    const auto x = clusteredVectors(300, kDim, 4);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { clustering.train(300, x.data()); }, "search_mode", "2"));
}

TEST(ClusteringHost, RefusesWhatIsNotFinite) {
    for (int n : {300, 900}) {
        for (Where where : {Where::Pageable, Where::Device, Where::Streamed}) {
            Call call;
            call.where = where;
            call.options = someOptions();
            for (float bad : {float(NAN), float(INFINITY)}) {
                auto x = clusteredVectors(n, kDim, kClusters);
                call.weights.assign(n, bad);
                EXPECT_TRUE(faissThrowsNaming(
                        [&] { cluster(x, call); }, "x_weights", "NaN"));
                call.weights.clear();
                x.back() = bad;
                EXPECT_TRUE(faissThrowsNaming(
                        [&] { cluster(x, call); }, "x", "NaN"));
            }
        }
    }
}

/// Wants an interrupt at one of its questions.
struct InterruptAt : faiss::InterruptCallback {
    explicit InterruptAt(int left) : left(left) {}
    bool want_interrupt() override {
        return left-- <= 0;
    }
    int left;
};

TEST(ClusteringHost, InterruptsLeaveNothingBehind) {
    const auto x = clusteredVectors(400, kDim, kClusters);
    Call call;
    call.options = someOptions();
    const auto expected = cluster(x, call);
    bool ended = false;
    int questions = 0;
    for (; !ended && questions < 1000; ++questions) {
        fake::reset(Schedule::Random, unsigned(questions));
        FakeProvider provider;
        GpuBitsClustering clustering(&provider, kDim, kClusters, call.options);
        faiss::InterruptCallback::instance =
                std::make_unique<InterruptAt>(questions);
        try {
            clustering.train(400, x.data());
            ended = true;
        } catch (const faiss::FaissException& error) {
            EXPECT_NE(
                    std::string(error.what()).find("computation interrupted"),
                    std::string::npos);
            EXPECT_TRUE(clustering.centroids.empty());
            EXPECT_TRUE(clustering.iteration_stats.empty());
        }
        faiss::InterruptCallback::clear_instance();
        EXPECT_EQ(fake::hostCopies(), 0);
        if (!ended) {
            clustering.train(400, x.data());
        }
        EXPECT_EQ(clustering.centroids, expected.centroids);
    }
    // Twice an iteration or more.
    EXPECT_GT(questions, 8);
    EXPECT_TRUE(ended);
}

} // namespace
} // namespace faiss_bits::test
