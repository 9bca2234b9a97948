/// GpuIndexBitsFlat where FAISS expects an index of its own: cloners,
/// containers, the coarse quantizer of an IVF index, k-means.

#include <unordered_set>

#include <faiss/Clustering.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatInFaiss : public GpuTest {};

std::unique_ptr<faiss::Index> toGpu(
        const faiss::Index& index,
        const faiss::gpu::GpuClonerOptions* options = nullptr) {
    return std::unique_ptr<faiss::Index>(
            gpu::index_cpu_to_gpu(sharedResources(), 0, &index, options));
}

TEST_F(FlatInFaiss, SmallClonesBothWays) {
    FlatCase c;
    c.fill = Fill::Integers;
    c.q = 40;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        faiss::IndexFlat cpu(c.d, kind.metric);
        cpu.add(c.n, data.vectors.data());
        faiss::gpu::GpuClonerOptions options;
        options.useFloat16 = kind.storage == DataType::Float16;
        const std::unique_ptr<faiss::Index> clone(gpu::index_cpu_to_gpu(
                sharedResources(),
                0,
                &cpu,
                &options,
                kind.storage == DataType::BFloat16));
        auto* ours = dynamic_cast<GpuIndexBitsFlat*>(clone.get());
        ASSERT_NE(ours, nullptr) << kind;
        EXPECT_EQ(
                dynamic_cast<GpuIndexBitsFlatL2*>(ours) != nullptr,
                kind.metric == faiss::METRIC_L2);
        EXPECT_EQ(
                dynamic_cast<GpuIndexBitsFlatIP*>(ours) != nullptr,
                kind.metric == faiss::METRIC_INNER_PRODUCT);
        data.expectExact(searchOnHost(*ours, data.queries, 30), 30);

        const std::unique_ptr<faiss::Index> back(
                faiss::gpu::index_gpu_to_cpu(ours));
        const auto* flat = dynamic_cast<faiss::IndexFlat*>(back.get());
        ASSERT_NE(flat, nullptr);
        EXPECT_EQ(flat->metric_type, kind.metric);
        ASSERT_EQ(flat->ntotal, c.n);
        EXPECT_EQ(
                std::vector<float>(flat->get_xb(), flat->get_xb() + c.n * c.d),
                data.vectors);
    }
}

TEST_F(FlatInFaiss, SmallClonesSubclassesAndOtherIndexes) {
    const auto vectors = makeVectors(500, 4, 1);
    faiss::IndexFlatL2 l2(4);
    faiss::IndexFlatIP ip(4);
    faiss::IndexFlat lp(4, faiss::METRIC_Lp);
    lp.metric_arg = 3;
    const faiss::IndexFlat unknown(4, faiss::MetricType(30));
    EXPECT_NE(dynamic_cast<GpuIndexBitsFlatL2*>(toGpu(l2).get()), nullptr);
    EXPECT_NE(dynamic_cast<GpuIndexBitsFlatIP*>(toGpu(ip).get()), nullptr);

    const auto power = toGpu(lp);
    ASSERT_NE(dynamic_cast<GpuIndexBitsFlat*>(power.get()), nullptr);
    EXPECT_EQ(power->metric_type, faiss::METRIC_Lp);
    EXPECT_EQ(power->metric_arg, 3);

    // A metric that we do not have stays FAISS's.
    const auto other = toGpu(unknown);
    EXPECT_EQ(dynamic_cast<GpuIndexBitsFlat*>(other.get()), nullptr);
    EXPECT_NE(dynamic_cast<faiss::gpu::GpuIndexFlat*>(other.get()), nullptr);

    faiss::IndexIVFFlat ivf(&l2, 4, 5);
    ivf.train(500, vectors.data());
    EXPECT_NE(
            dynamic_cast<faiss::gpu::GpuIndexIVFFlat*>(toGpu(ivf).get()),
            nullptr);
}

TEST_F(FlatInFaiss, SmallClonerArguments) {
    const faiss::IndexFlatL2 l2(4);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::index_cpu_to_gpu(nullptr, 0, &l2); }, "provider"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::index_cpu_to_gpu(sharedResources(), 0, nullptr); },
            "index"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::index_cpu_to_gpu(sharedResources(), 99, &l2); },
            "device",
            "99"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::index_cpu_to_gpu(sharedResources(), -1, &l2); },
            "device",
            "-1"));
}

TEST_F(FlatInFaiss, SmallInsideContainers) {
    FlatCase c;
    c.fill = Fill::Integers;
    c.q = 40;
    const int k = 10;
    const FlatData data(c);
    faiss::IndexFlatL2 flat(c.d);
    faiss::IndexIDMap idMap(&flat);
    std::vector<int64_t> ids(c.n);
    for (int64_t i = 0; i < c.n; ++i) {
        ids[i] = 7 * i + 3;
    }
    idMap.add_with_ids(c.n, data.vectors.data(), ids.data());
    const auto clone = toGpu(idMap);
    auto* mapped = dynamic_cast<faiss::IndexIDMap*>(clone.get());
    ASSERT_NE(mapped, nullptr);
    ASSERT_NE(dynamic_cast<GpuIndexBitsFlatL2*>(mapped->index), nullptr);
    auto out = searchOnHost(*mapped, data.queries, k);
    for (int64_t& label : out.labels) {
        ASSERT_EQ(label % 7, 3);
        label = (label - 3) / 7;
    }
    data.expectExact(out, k);
    // Additions go through ours as well.
    const int64_t id = 1000003;
    mapped->add_with_ids(1, data.queries.data(), &id);
    EXPECT_EQ(mapped->index->ntotal, c.n + 1);
    const auto grown = searchOnHost(*mapped, data.queries, k);
    EXPECT_NE(
            std::find(grown.labels.begin(), grown.labels.begin() + k, id),
            grown.labels.begin() + k);

    faiss::IndexFlatL2 inner(c.d);
    faiss::RandomRotationMatrix rotation(c.d, c.d);
    rotation.init(5);
    faiss::IndexPreTransform preTransform(&rotation, &inner);
    preTransform.add(c.n, data.vectors.data());
    const auto transformed = toGpu(preTransform);
    auto* outer = dynamic_cast<faiss::IndexPreTransform*>(transformed.get());
    ASSERT_NE(outer, nullptr);
    ASSERT_NE(dynamic_cast<GpuIndexBitsFlatL2*>(outer->index), nullptr);
    const auto rotated = searchOnHost(*outer, data.queries, 1);
    const auto onCpu = searchOnHost(preTransform, data.queries, 1);
    for (int64_t i = 0; i < c.q; ++i) {
        EXPECT_NEAR(
                rotated.distances[i],
                onCpu.distances[i],
                1e-4 * (1 + onCpu.distances[i]));
    }
}

/// FAISS's own config in every constructor: nothing of it is lost.
template <class Index, class Config, class Make>
void expectConfigIsTaken(const FlatData& data, Make make) {
    Config config;
    config.device = 0;
    config.useFloat16 = data.c.storage == DataType::Float16;
    if constexpr (requires { config.useBFloat16; }) {
        config.useBFloat16 = data.c.storage == DataType::BFloat16;
    }
    config.memorySpace = faiss::gpu::MemorySpace::Unified;
    const std::unique_ptr<Index> index = make(config);
    if (index->ntotal == 0) {
        index->add(data.c.n, data.vectors.data());
    }
    // What is read back is rounded if the storage is float16.
    auto stored = data.vectors;
    roundAllTo(data.type(), stored);
    std::vector<float> back(stored.size());
    index->reconstruct_n(0, data.c.n, back.data());
    ASSERT_EQ(back, stored) << data.c;
    data.expectNearest(searchOnHost(*index, data.queries, 10), 10);
}

template <class Config>
void expectConfigIsTaken() {
    auto* provider = sharedResources();
    const auto resources = provider->getResources();
    FlatCase c;
    c.n = 300;
    for (const FlatCase& kind : kindsOf(c)) {
        if (kind.storage == DataType::BFloat16 &&
            !std::is_same_v<Config, GpuIndexBitsFlatConfig>) {
            continue;
        }
        const FlatData data(kind);
        const int d = kind.d;
        faiss::IndexFlat cpu(d, kind.metric);
        cpu.add(c.n, data.vectors.data());
        const auto check = [&](auto make) {
            using Index = typename decltype(make(Config()))::element_type;
            expectConfigIsTaken<Index, Config>(data, make);
        };
        check([&](Config config) {
            return std::make_unique<GpuIndexBitsFlat>(
                    provider, d, kind.metric, config);
        });
        check([&](Config config) {
            return std::make_unique<GpuIndexBitsFlat>(
                    resources, d, kind.metric, config);
        });
        check([&](Config config) {
            return std::make_unique<GpuIndexBitsFlat>(provider, &cpu, config);
        });
        check([&](Config config) {
            return std::make_unique<GpuIndexBitsFlat>(resources, &cpu, config);
        });
        if (data.isIP()) {
            faiss::IndexFlatIP ip(d);
            ip.add(c.n, data.vectors.data());
            check([&](Config config) {
                return std::make_unique<GpuIndexBitsFlatIP>(
                        provider, d, config);
            });
            check([&](Config config) {
                return std::make_unique<GpuIndexBitsFlatIP>(
                        resources, &ip, config);
            });
        } else {
            faiss::IndexFlatL2 l2(d);
            l2.add(c.n, data.vectors.data());
            check([&](Config config) {
                return std::make_unique<GpuIndexBitsFlatL2>(
                        provider, d, config);
            });
            check([&](Config config) {
                return std::make_unique<GpuIndexBitsFlatL2>(
                        resources, &l2, config);
            });
        }
    }
}

TEST_F(FlatInFaiss, SmallEveryConstructorTakesEitherConfig) {
    expectConfigIsTaken<faiss::gpu::GpuIndexFlatConfig>();
    expectConfigIsTaken<GpuIndexBitsFlatConfig>();
    // A braced config stays unambiguous.
    const GpuIndexBitsFlatL2 index(sharedResources(), 4, {});
    EXPECT_EQ(index.d, 4);
}

/// With every list probed an IVF search is exact, whatever the quantizer; with
/// some, it must match one whose quantizer is FAISS's.
TEST_F(FlatInFaiss, CoarseQuantizerOfIVFFlat) {
    FlatCase c;
    c.n = 20000;
    c.d = 16;
    c.q = 60;
    const int nlist = 64;
    const int k = 10;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        FlatCase storage = kind;
        storage.storage = DataType::Float32; // of the lists
        const FlatData stored(storage);

        GpuIndexBitsFlat quantizer(
                sharedResources(), c.d, kind.metric, configOf(kind.storage));
        faiss::gpu::GpuIndexIVFFlat ours(
                sharedResources(), &quantizer, c.d, nlist, kind.metric);
        ours.train(c.n, data.vectors.data());
        ASSERT_EQ(quantizer.ntotal, nlist);
        ours.add(c.n, data.vectors.data());
        ASSERT_EQ(ours.ntotal, c.n);

        // FAISS's quantizer, with the same centroids.
        std::vector<float> centroids(nlist * c.d);
        quantizer.reconstruct_n(0, nlist, centroids.data());
        faiss::gpu::GpuIndexFlatConfig faissConfig;
        faissConfig.useFloat16 = kind.storage == DataType::Float16;
        faiss::gpu::GpuIndexFlat faissQuantizer(
                sharedResources(), c.d, kind.metric, faissConfig);
        faissQuantizer.add(nlist, centroids.data());
        faiss::gpu::GpuIndexIVFFlat theirs(
                sharedResources(), &faissQuantizer, c.d, nlist, kind.metric);
        theirs.add(c.n, data.vectors.data());

        // setNumProbes is gone in later releases, nprobe is in all.
        ours.nprobe = theirs.nprobe = 8;
        const auto a = searchOnHost(ours, data.queries, k);
        const auto b = searchOnHost(theirs, data.queries, k);
        int same = 0;
        for (size_t i = 0; i < a.labels.size(); ++i) {
            same += a.labels[i] == b.labels[i];
        }
        EXPECT_GE(same, int(0.97 * a.labels.size())) << kind;

        ours.nprobe = nlist;
        stored.expectWithinRounding(searchOnHost(ours, data.queries, k), k);
    }
}

TEST_F(FlatInFaiss, AssignmentIndexOfClustering) {
    const int d = 12;
    const int64_t n = 20000;
    const int k = 50;
    const auto vectors = makeVectors(n, d, 4);
    const auto objectiveWith = [&](faiss::Index& index) {
        faiss::Clustering clustering(d, k);
        clustering.niter = 8;
        clustering.train(n, vectors.data(), index);
        EXPECT_EQ(index.ntotal, k);
        EXPECT_EQ(clustering.centroids.size(), size_t(k) * d);
        return double(clustering.iteration_stats.back().obj);
    };
    faiss::IndexFlatL2 cpu(d);
    const double expected = objectiveWith(cpu);
    for (DataType storage : kStorages) {
        GpuIndexBitsFlatL2 ours(sharedResources(), d, configOf(storage));
        // The same seed, so the same start; near ties may part them later.
        EXPECT_NEAR(objectiveWith(ours) / expected, 1.0, 0.01) << int(storage);
    }
}

} // namespace
} // namespace faiss_bits::test
