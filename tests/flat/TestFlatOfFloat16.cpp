/// FAISS's flat index of float16 (codes of an IndexScalarQuantizer), copied to
/// GpuIndexBitsFlat and back.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/impl/IDSelector.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "faiss_bits/flat/SearchParametersBitsFlat.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatOfFloat16 : public GpuTest {};

constexpr auto kFloat16 = faiss::ScalarQuantizer::QT_fp16;

std::unique_ptr<faiss::Index> toGpu(const faiss::Index& index) {
    return std::unique_ptr<faiss::Index>(
            gpu::index_cpu_to_gpu(sharedResources(), 0, &index));
}

std::vector<float> vectorsOf(const faiss::Index& index) {
    std::vector<float> vectors(size_t(index.ntotal) * index.d);
    index.reconstruct_n(0, index.ntotal, vectors.data());
    return vectors;
}

/// Vectors in FAISS's index, and as it has rounded them.
struct Codes {
    explicit Codes(
            const FlatCase& c,
            faiss::MetricType metric = faiss::METRIC_L2)
            : data(withMetric(c, metric)), index(c.d, kFloat16, metric) {
        index.add(c.n, data.vectors.data());
        data.vectors = vectorsOf(index);
    }

    static FlatCase withMetric(FlatCase c, faiss::MetricType metric) {
        c.metric = metric;
        c.storage = DataType::Float16;
        return c;
    }

    FlatData data;
    faiss::IndexScalarQuantizer index;
};

TEST_F(FlatOfFloat16, SmallBothWays) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const Codes codes(FlatCase(), metric);
        const auto clone = toGpu(codes.index);
        auto* ours = dynamic_cast<GpuIndexBitsFlat*>(clone.get());
        ASSERT_NE(ours, nullptr);
        EXPECT_EQ(
                dynamic_cast<GpuIndexBitsFlatL2*>(ours) != nullptr,
                metric == faiss::METRIC_L2);
        EXPECT_EQ(
                dynamic_cast<GpuIndexBitsFlatIP*>(ours) != nullptr,
                metric == faiss::METRIC_INNER_PRODUCT);
        EXPECT_EQ(ours->metric_type, metric);
        EXPECT_EQ(vectorsOf(*ours), codes.data.vectors);
        codes.data.expectNearest(
                searchOnHost(*ours, codes.data.queries, 30), 30);

        const std::unique_ptr<faiss::Index> back(
                faiss::gpu::index_gpu_to_cpu(ours));
        ASSERT_NE(dynamic_cast<faiss::IndexFlat*>(back.get()), nullptr);
        EXPECT_EQ(back->metric_type, metric);
        EXPECT_EQ(vectorsOf(*back), codes.data.vectors);
    }
}

/// Every pattern of 16 bits: no component changes, and NaN stays NaN.
TEST_F(FlatOfFloat16, SmallEveryValue) {
    const int d = 16;
    const int64_t n = (1 << 16) / d;
    faiss::IndexScalarQuantizer index(d, kFloat16);
    index.add(n, std::vector<float>(n * d).data());
    std::vector<uint16_t> bits(n * d);
    std::iota(bits.begin(), bits.end(), uint16_t(0));
    std::memcpy(index.codes.data(), bits.data(), bits.size() * 2);
    const auto ours = vectorsOf(*toGpu(index));
    for (size_t i = 0; i < bits.size(); ++i) {
        const float expected = float16Value(bits[i]);
        if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(ours[i])) << i;
        } else {
            ASSERT_EQ(ours[i], expected) << i;
            ASSERT_EQ(std::signbit(ours[i]), std::signbit(expected)) << i;
        }
    }
}

TEST_F(FlatOfFloat16, SmallEmptyOnesGrow) {
    FlatCase c;
    c.n = 0;
    const Codes none(c);
    const auto clone = toGpu(none.index);
    ASSERT_NE(dynamic_cast<GpuIndexBitsFlatL2*>(clone.get()), nullptr);
    EXPECT_EQ(clone->ntotal, 0);
    const Codes some((FlatCase()));
    clone->add(some.data.c.n, some.data.vectors.data());
    some.data.expectNearest(searchOnHost(*clone, some.data.queries, 10), 10);
}

TEST_F(FlatOfFloat16, SmallFilters) {
    const Codes codes((FlatCase()));
    const auto clone = toGpu(codes.index);
    faiss::IDSelectorRange range(100, 300);
    gpu::SearchParametersBitsFlat params;
    params.sel = &range;
    const int64_t k = 200;
    const auto found = searchOnHost(*clone, codes.data.queries, k, &params);
    const auto all = searchOnHost(*clone, codes.data.queries, codes.data.c.n);
    for (int64_t i = 0; i < codes.data.c.q; ++i) {
        std::vector<int64_t> expected;
        for (int64_t j = 0; j < codes.data.c.n; ++j) {
            const int64_t id = all.labels[i * codes.data.c.n + j];
            if (range.is_member(id)) {
                expected.push_back(id);
            }
        }
        const auto* labels = found.labels.data() + i * k;
        ASSERT_EQ(std::vector<int64_t>(labels, labels + k), expected) << i;
    }
}

TEST_F(FlatOfFloat16, SmallInsideOthers) {
    const Codes codes((FlatCase()));
    const FlatData& data = codes.data;
    const int k = 10;

    faiss::IndexScalarQuantizer inner(data.c.d, kFloat16);
    faiss::IndexIDMap idMap(&inner);
    std::vector<int64_t> ids(data.c.n);
    for (int64_t i = 0; i < data.c.n; ++i) {
        ids[i] = 7 * i + 3;
    }
    idMap.add_with_ids(data.c.n, data.vectors.data(), ids.data());
    const auto ofIds = toGpu(idMap);
    auto* mapped = dynamic_cast<faiss::IndexIDMap*>(ofIds.get());
    ASSERT_NE(mapped, nullptr);
    ASSERT_NE(dynamic_cast<GpuIndexBitsFlatL2*>(mapped->index), nullptr);
    auto out = searchOnHost(*mapped, data.queries, k);
    for (int64_t& label : out.labels) {
        ASSERT_EQ(label % 7, 3);
        label = (label - 3) / 7;
    }
    data.expectNearest(out, k);

    // Components in another order: no rounding.
    std::vector<int> order(data.c.d);
    std::iota(order.rbegin(), order.rend(), 0);
    faiss::RemapDimensionsTransform reverse(data.c.d, data.c.d, order.data());
    faiss::IndexScalarQuantizer reversed(data.c.d, kFloat16);
    faiss::IndexPreTransform preTransform(&reverse, &reversed);
    preTransform.add(data.c.n, data.vectors.data());
    const auto transformed = toGpu(preTransform);
    auto* outer = dynamic_cast<faiss::IndexPreTransform*>(transformed.get());
    ASSERT_NE(outer, nullptr);
    auto* inOrder = dynamic_cast<GpuIndexBitsFlatL2*>(outer->index);
    ASSERT_NE(inOrder, nullptr);
    EXPECT_EQ(vectorsOf(*inOrder), vectorsOf(reversed));
    EXPECT_EQ(
            searchOnHost(*outer, data.queries, 1).labels,
            searchOnHost(*mapped->index, data.queries, 1).labels);

    // What it refines with stays where it is.
    faiss::IndexScalarQuantizer base(data.c.d, kFloat16);
    base.add(data.c.n, data.vectors.data());
    faiss::IndexRefineFlat refine(&base, data.vectors.data());
    const auto refined = toGpu(refine);
    auto* ours = dynamic_cast<faiss::IndexRefineFlat*>(refined.get());
    ASSERT_NE(ours, nullptr);
    ASSERT_NE(dynamic_cast<GpuIndexBitsFlatL2*>(ours->base_index), nullptr);
    EXPECT_EQ(
            searchOnHost(*ours, data.queries, 1).labels,
            searchOnHost(*mapped->index, data.queries, 1).labels);
}

TEST_F(FlatOfFloat16, SmallOthersAreNotTaken) {
    const Codes codes((FlatCase()));
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                gpu::index_cpu_to_gpu(
                        sharedResources(), 0, &codes.index, nullptr, true);
            },
            "useBFloat16"));
    // FAISS copies these on the CPU.
    faiss::IndexScalarQuantizer bytes(
            4, faiss::ScalarQuantizer::QT_8bit_direct);
    EXPECT_NE(
            dynamic_cast<faiss::IndexScalarQuantizer*>(toGpu(bytes).get()),
            nullptr);
}

/// They are read some at a time: 2^24 components.
TEST_F(FlatOfFloat16, AllPieces) {
    const int d = 128;
    const int64_t atATime = (int64_t(1) << 24) / d;
    for (int64_t n : {atATime - 1, atATime, atATime + 1, 2 * atATime + 3}) {
        faiss::IndexScalarQuantizer index(d, kFloat16);
        index.add(n, makeVectors(n, d, 3).data());
        const auto clone = toGpu(index);
        ASSERT_EQ(clone->ntotal, n);
        ASSERT_EQ(vectorsOf(*clone), vectorsOf(index)) << n;
    }
}

} // namespace
} // namespace faiss_bits::test
