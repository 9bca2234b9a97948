/// GpuIndexBitsIVFPQ where FAISS has a GpuIndexIVFPQ: decoding, training,
/// adding, copying, cloners, calls.

#include <faiss/IndexPreTransform.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>
#include <faiss/gpu/GpuCloner.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "tests/ivf/ProductHarness.h"

namespace faiss_bits::test {
namespace {

class IvfProductInFaiss : public GpuTest {};

constexpr ProductShape kShape = {12, 6, 8};

IvfCase someCase() {
    IvfCase c;
    c.n = 900;
    c.d = kShape.dims;
    c.nlist = 11;
    c.q = 60;
    return c;
}

TEST_F(IvfProductInFaiss, SmallDecodesAsTheCpuBitByBit) {
    for (int bits : {4, 5, 6, 8}) {
        const ProductData data = makeProduct(someCase(), {12, 6, bits});
        std::vector<float> theirs(data.c.d);
        for (int list = 0; list < data.c.nlist; ++list) {
            const auto& lists = *data.oracle.cpu->invlists;
            for (size_t v = 0; v < lists.list_size(list); ++v) {
                data.coded->reconstruct_from_offset(list, v, theirs.data());
                ASSERT_EQ(
                        std::memcmp(
                                theirs.data(),
                                lists.get_codes(list) + v * lists.code_size,
                                lists.code_size),
                        0)
                        << bits << " bits";
            }
        }
    }
}

TEST_F(IvfProductInFaiss, SmallAgreesWithFaiss) {
    // Numbers whose distances are exact in float32.
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (bool interleaved : {false, true}) {
            IvfCase c = someCase();
            c.metric = metric;
            c.fill = Fill::Integers;
            c.interleaved = interleaved;
            const ProductData data = makeProduct(c, {12, 3, 8});
            const auto index = data.makeIndex();
            faiss::gpu::GpuIndexIVFPQ theirs(
                    sharedResources(), data.coded.get(), data.config());
            for (int nprobe : {1, 4, 11}) {
                // Of lists that are as near FAISS takes others.
                if (metric != faiss::METRIC_L2 && nprobe < c.nlist) {
                    continue;
                }
                index->nprobe = nprobe;
                theirs.nprobe = nprobe;
                const int k = 10;
                EXPECT_EQ(
                        searchOnHost(*index, data.oracle.queries, k).distances,
                        searchOnHost(theirs, data.oracle.queries, k).distances);
            }
        }
    }
}

TEST_F(IvfProductInFaiss, SmallTrainsAddsAndGoesBack) {
    for (int bits : {4, 5, 6, 8}) {
        for (bool interleaved : {true, false}) {
            if (!interleaved && bits != 8) {
                continue;
            }
            IvfCase c = someCase();
            c.metric =
                    bits == 5 ? faiss::METRIC_INNER_PRODUCT : faiss::METRIC_L2;
            c.interleaved = interleaved;
            SCOPED_TRACE(testing::Message() << c << " bits=" << bits);
            IvfData data(c);
            faiss::gpu::GpuIndexIVFPQConfig config;
            config.interleavedLayout = interleaved;
            GpuIndexBitsIVFPQ index(
                    sharedResources(), c.d, c.nlist, 4, bits, c.metric, config);
            EXPECT_NE(
                    dynamic_cast<GpuIndexBitsFlat*>(index.quantizer), nullptr);
            index.train(c.n, data.vectors.data());
            const int64_t half = c.n / 2;
            index.add_with_ids(half, data.vectors.data(), data.ids.data());
            index.add_with_ids(
                    c.n - half,
                    data.vectors.data() + half * c.d,
                    data.ids.data() + half);
            ASSERT_EQ(index.ntotal, c.n);

            faiss::IndexIVFPQ cpu;
            index.copyTo(&cpu);
            ASSERT_EQ(cpu.ntotal, c.n);
            decodeLists(cpu, data);
            index.nprobe = 5;
            const SearchOutput found = searchOnHost(index, data.queries, 20);
            data.expectExact(found, 5, 20);
            if (bits == 8 || FAISS_BITS_FAISS_COPIES_PACKED_CODES) {
                const std::unique_ptr<faiss::Index> back(
                        faiss::gpu::index_gpu_to_cpu(&index));
                const auto* same = dynamic_cast<faiss::IndexIVFPQ*>(back.get());
                ASSERT_NE(same, nullptr);
                decodeLists(*same, data);
                data.expectExact(found, 5, 20);
            }
            // It is an index that FAISS's CPU can search.
            cpu.nprobe = 5;
            const SearchOutput theirs = searchOnHost(cpu, data.queries, 20);
            for (size_t i = 0; i < theirs.distances.size(); ++i) {
                ASSERT_NEAR(found.distances[i], theirs.distances[i], 1e-4f);
            }
            index.reset();
            for (int64_t label : searchOnHost(index, data.queries, 20).labels) {
                ASSERT_EQ(label, -1);
            }
            index.add_with_ids(c.n, data.vectors.data(), data.ids.data());
            EXPECT_TRUE(
                    sameOutput(searchOnHost(index, data.queries, 20), found));
        }
    }
}

TEST_F(IvfProductInFaiss, SmallClones) {
    // Also codes that FAISS's cloner refuses.
    const ProductShape shapes[] = {
            {12, 6, 8}, {12, 4, 8}, {12, 4, 4}, {12, 6, 6}, {128, 64, 8}};
    for (const ProductShape& shape : shapes) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            SCOPED_TRACE(testing::Message() << shape);
            IvfCase c = someCase();
            c.metric = metric;
            const ProductData data = makeProduct(c, shape);
            const auto& oracle = data.oracle;
            if (shape.bits != 8 && !FAISS_BITS_FAISS_COPIES_PACKED_CODES) {
                EXPECT_THROW(
                        gpu::index_cpu_to_gpu(
                                sharedResources(), 0, data.coded.get()),
                        faiss::FaissException);
                continue;
            }
            data.coded->nprobe = 3;
            const std::unique_ptr<faiss::Index> clone(gpu::index_cpu_to_gpu(
                    sharedResources(), 0, data.coded.get()));
            auto* ours = dynamic_cast<GpuIndexBitsIVFPQ*>(clone.get());
            ASSERT_NE(ours, nullptr);
            EXPECT_NE(
                    dynamic_cast<GpuIndexBitsFlat*>(ours->quantizer), nullptr);
            EXPECT_EQ(ours->nprobe, 3);
            oracle.expectExact(searchOnHost(*ours, oracle.queries, 9), 3, 9);

            // Behind a transformation, as of OPQ; this one is none.
            const int d = data.c.d;
            faiss::LinearTransform same(d, d, false);
            same.A.assign(size_t(d) * d, 0);
            for (int i = 0; i < d; ++i) {
                same.A[size_t(i) * d + i] = 1;
            }
            same.is_trained = true;
            faiss::IndexPreTransform transformed(&same, data.coded.get());
            const std::unique_ptr<faiss::Index> outer(
                    gpu::index_cpu_to_gpu(sharedResources(), 0, &transformed));
            auto* behind = dynamic_cast<faiss::IndexPreTransform*>(outer.get());
            ASSERT_NE(behind, nullptr);
            EXPECT_NE(dynamic_cast<GpuIndexBitsIVFPQ*>(behind->index), nullptr);
            oracle.expectExact(searchOnHost(*behind, oracle.queries, 9), 3, 9);
        }
    }
}

TEST_F(IvfProductInFaiss, SmallCopiesMoreProbesThanFaiss) {
    const ProductData data = makeProduct(someCase(), kShape);
    const auto& oracle = data.oracle;
    data.coded->nprobe = 5000;
    const auto index = data.makeIndex();
    EXPECT_EQ(index->nprobe, 5000);
    oracle.expectExact(
            searchOnHost(*index, oracle.queries, 9), data.c.nlist, 9);
    // FAISS's own copyFrom, of the base class.
    data.coded->nprobe = 2;
    static_cast<faiss::gpu::GpuIndexIVFPQ*>(index.get())
            ->copyFrom(data.coded.get());
    oracle.expectExact(searchOnHost(*index, oracle.queries, 9), 2, 9);
}

TEST_F(IvfProductInFaiss, SmallParametersAndGivenLists) {
    for (int64_t q : {5, 120}) {
        IvfCase c = someCase();
        c.q = q;
        expectParametersAndGivenLists(makeProduct(c, kShape));
    }
}

TEST_F(IvfProductInFaiss, SmallCaptured) {
    for (int64_t q : {2, 300}) {
        IvfCase c = someCase();
        c.q = q;
        expectCaptured(makeProduct(c, kShape));
    }
}

TEST_F(IvfProductInFaiss, SmallCopyThatFails) {
    IvfCase other = someCase();
    other.n = 700;
    other.nlist = 4;
    other.metric = faiss::METRIC_INNER_PRODUCT;
    testCopyThatFails(
            makeProduct(someCase(), kShape), makeProduct(other, {8, 4, 8}));
}

TEST_F(IvfProductInFaiss, SmallBadArguments) {
    auto* resources = sharedResources();
    using Index = GpuIndexBitsIVFPQ;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 0, 5, 1, 8); }, "dims", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 0, 2, 8); }, "nlist", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, 0, 8); }, "subQuantizers", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, 3, 8); }, "subQuantizers", "3"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 5, 5, 5, 8); }, "subQuantizers", "5"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, 2, 4); }, "bitsPerCode", "4"));
    faiss::gpu::GpuIndexIVFPQConfig packed;
    packed.interleavedLayout = true;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, 2, 7, faiss::METRIC_L2, packed); },
            "bitsPerCode",
            "7"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, 2, 8, faiss::METRIC_L1); }, "metric"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { Index(nullptr, 4, 5, 2, 8); }, "provider"));
    faiss::Index* noQuantizer = nullptr;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, noQuantizer, 4, 5, 2, 8); },
            "coarseQuantizer"));

    // A copy that cannot be: nothing changes.
    const ProductData data = makeProduct(someCase(), kShape);
    const auto index = data.makeIndex();
    index->nprobe = 3;
    data.coded->by_residual = false;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->copyFrom(data.coded.get()); }, "by_residual"));
    data.coded->by_residual = true;
    data.coded->polysemous_ht = 3;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->copyFrom(data.coded.get()); }, "polysemous_ht", "3"));
    data.oracle.expectExact(searchOnHost(*index, data.oracle.queries, 9), 3, 9);
}

} // namespace
} // namespace faiss_bits::test
