/// GpuIndexBitsFlat with bfloat16 storage, which FAISS's own code does not
/// know: what it finds, and what it must not take for an empty index.

#include <cmath>

#include <faiss/IndexIVFFlat.h>
#include <faiss/MetaIndexes.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/GpuIndexIVFPQ.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatBFloat16 : public GpuTest {};

FlatCase bfloat16Case() {
    FlatCase c;
    c.storage = DataType::BFloat16;
    return c;
}

/// Values that float16 has not: of any size, halfway between two numbers, and
/// those that round to infinity.
TEST_F(FlatBFloat16, SmallStoredValues) {
    const float tiny = std::ldexp(1.f, -133);
    const std::vector<float> x = {
            1e30f,
            -3e-30f,
            1 + 0x1p-8f,
            1 + 0x3p-8f,
            tiny,
            -0.f,
            65520.f,
            3.3e38f,
            3.4e38f,
            -3.4e38f,
            INFINITY,
            0.1f};
    const int d = int(x.size());
    GpuIndexBitsFlatL2 index(
            sharedResources(), d, configOf(DataType::BFloat16));
    index.add(1, x.data());
    auto expected = x;
    roundAllTo(DataType::BFloat16, expected);
    EXPECT_EQ(expected[2], 1.f);
    EXPECT_EQ(expected[8], INFINITY);
    std::vector<float> back(d);
    index.reconstruct(0, back.data());
    for (int i = 0; i < d; ++i) {
        EXPECT_TRUE(sameBits(back[i], expected[i])) << x[i];
    }
}

/// Queries are not rounded: distances are of what is stored and what is asked.
TEST_F(FlatBFloat16, SmallCanonicalDistances) {
    for (float scale : {1.f, 1e10f, 1e-12f}) {
        for (int64_t q : {1, 16, 17, 60}) {
            FlatCase c = bfloat16Case();
            c.q = q;
            c.n = 3000;
            for (auto metric :
                 {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
                c.metric = metric;
                FlatData data(c);
                for (auto* values : {&data.vectors, &data.queries}) {
                    for (float& value : *values) {
                        value *= scale;
                    }
                }
                // Plain searches round the queries.
                FlatData plain = data;
                roundAllTo(DataType::BFloat16, plain.queries);
                const auto index = data.makeIndex();
                for (int64_t k : {1, 20, 500}) {
                    data.expectNearest(
                            searchOnHost(*index, data.queries, k), k);
                }
                index->search_mode = SearchMode::Plain;
                plain.expectWithinRounding(
                        searchOnHost(*index, plain.queries, 20), 20);
            }
        }
    }
}

TEST_F(FlatBFloat16, SmallBothTypes) {
    GpuIndexBitsFlatConfig config;
    config.useFloat16 = config.useBFloat16 = true;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatL2(sharedResources(), 4, config); },
            "useBFloat16"));
}

/// FAISS's code that reads the index through its base class.
TEST_F(FlatBFloat16, SmallThroughTheBaseClass) {
    FlatCase c = bfloat16Case();
    c.fill = Fill::Integers;
    c.q = 40;
    const FlatData data(c);
    const auto index = data.makeIndex();
    faiss::gpu::GpuIndexFlat& base = *index;
    EXPECT_EQ(base.getNumVecs(), size_t(c.n));
    EXPECT_EQ(index->getNumVecs(), size_t(c.n));
    faiss::IndexFlat cpu;
    base.copyTo(&cpu);
    ASSERT_EQ(cpu.ntotal, c.n);
    EXPECT_EQ(
            std::vector<float>(cpu.get_xb(), cpu.get_xb() + c.n * c.d),
            data.vectors);
    const std::unique_ptr<faiss::Index> clone(
            faiss::gpu::index_gpu_to_cpu(&base));
    ASSERT_EQ(clone->ntotal, c.n);
    data.expectExact(searchOnHost(base, data.queries, 10), 10);

    base.reset();
    EXPECT_EQ(index->ntotal, 0);
    base.add(c.n, data.vectors.data());
    data.expectExact(searchOnHost(base, data.queries, 10), 10);
    EXPECT_TRUE(faissThrowsNaming([&] { index->getGpuData(); }, "getGpuData"));
}

/// GpuIndexFlat::copyFrom is not virtual and stores float32: an exception, not
/// results of other vectors than the index promises, until it is mended.
TEST_F(FlatBFloat16, SmallBaseClassCopyFrom) {
    FlatCase c = bfloat16Case();
    c.fill = Fill::Integers;
    FlatCase other = c;
    other.d = 5;
    other.n = 77;
    const FlatData data(c);
    const FlatData otherData(other);
    faiss::IndexFlatL2 cpu(other.d);
    cpu.add(other.n, otherData.vectors.data());
    for (bool byReset : {false, true}) {
        const auto index = data.makeIndex();
        index->faiss::gpu::GpuIndexFlat::copyFrom(&cpu);
        const float* x = otherData.queries.data();
        std::vector<float> out(other.d * 3);
        const int64_t keys[] = {0, 1, 2};
        for (const std::function<void()>& call :
             std::vector<std::function<void()>>{
                     [&] { searchOnHost(*index, otherData.queries, 3); },
                     [&] { index->add(1, x); },
                     [&] { index->reserve(1000); },
                     [&] { index->reconstruct_n(0, 3, out.data()); },
                     [&] { index->reconstruct_batch(3, keys, out.data()); },
                     [&] { index->compute_residual(x, out.data(), 1); },
                     [&] { index->copyTo(&cpu); }}) {
            EXPECT_TRUE(faissThrowsNaming(call, "copyFrom", "useBFloat16"));
        }
        if (byReset) {
            index->reset();
            EXPECT_EQ(index->ntotal, 0);
            index->add(other.n, otherData.vectors.data());
        } else {
            faiss::IndexFlatL2 again(other.d);
            again.add(other.n, otherData.vectors.data());
            index->copyFrom(&again);
        }
        ASSERT_EQ(index->ntotal, other.n);
        otherData.expectExact(searchOnHost(*index, otherData.queries, 20), 20);
        cpu = faiss::IndexFlatL2(other.d);
        cpu.add(other.n, otherData.vectors.data());
    }
}

/// FAISS's IVFPQ takes its centroids from where no bfloat16 is. Its tables are
/// refused (GpuIndexIVFFlat, which needs none: TestFlatInFaiss.cpp).
TEST_F(FlatBFloat16, SmallNoQuantizerOfIVFPQ) {
    const int d = 32;
    const auto vectors = makeVectors(3000, d, 1);
    GpuIndexBitsFlatL2 quantizer(
            sharedResources(), d, configOf(DataType::BFloat16));
    faiss::gpu::GpuIndexIVFPQConfig config;
    config.usePrecomputedTables = true;
    EXPECT_THROW(
            {
                faiss::gpu::GpuIndexIVFPQ index(
                        sharedResources(),
                        &quantizer,
                        d,
                        16,
                        8,
                        8,
                        faiss::METRIC_L2,
                        config);
                index.train(3000, vectors.data());
            },
            faiss::FaissException);
}

TEST_F(FlatBFloat16, SmallCloner) {
    FlatCase c = bfloat16Case();
    const FlatData data(c);
    faiss::IndexFlatL2 flat(c.d);
    faiss::IndexIDMap idMap(&flat);
    std::vector<int64_t> ids(c.n);
    for (int64_t i = 0; i < c.n; ++i) {
        ids[i] = i;
    }
    idMap.add_with_ids(c.n, data.vectors.data(), ids.data());
    const std::unique_ptr<faiss::Index> clone(
            gpu::index_cpu_to_gpu(sharedResources(), 0, &idMap, nullptr, true));
    data.expectNearest(searchOnHost(*clone, data.queries, 10), 10);

    faiss::gpu::GpuClonerOptions both;
    both.useFloat16 = true;
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                gpu::index_cpu_to_gpu(sharedResources(), 0, &flat, &both, true);
            },
            "useBFloat16"));
    const faiss::IndexIVFFlat ivf(&flat, c.d, 5);
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                gpu::index_cpu_to_gpu(
                        sharedResources(), 0, &ivf, nullptr, true);
            },
            "useBFloat16"));
}

} // namespace
} // namespace faiss_bits::test
