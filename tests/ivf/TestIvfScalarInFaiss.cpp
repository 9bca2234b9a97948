/// GpuIndexBitsIVFScalarQuantizer where FAISS has a GpuIndexIVFScalarQuantizer:
/// decoding, training, adding, copying, cloners.

#include <faiss/IndexPreTransform.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/GpuIndexFlat.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "tests/ivf/ScalarHarness.h"

namespace faiss_bits::test {
namespace {

class IvfScalarInFaiss : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 900;
    c.d = 12;
    c.nlist = 11;
    c.q = 60;
    return c;
}

/// As a search finds it: zero has no sign.
uint32_t bitsOf(float value) {
    value = value + 0.0f;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/// Component i of every vector, by id: what an inner product with the unit
/// vector i says.
std::unordered_map<int64_t, uint32_t> componentOf(
        const faiss::Index& index,
        int i) {
    std::vector<float> unit(index.d);
    unit[i] = 1;
    const SearchOutput found =
            searchOnHost(index, unit, std::max<int64_t>(index.ntotal, 1));
    std::unordered_map<int64_t, uint32_t> byId;
    for (size_t j = 0; j < found.labels.size(); ++j) {
        byId[found.labels[j]] = bitsOf(found.distances[j]);
    }
    return byId;
}

TEST_F(IvfScalarInFaiss, SmallDecodesAsFaissBitByBit) {
    for (const ScalarType& one : kScalarTypes) {
        for (bool byResidual : {false, true}) {
            SCOPED_TRACE(testing::Message() << one.name << byResidual);
            IvfCase c = someCase();
            c.metric = faiss::METRIC_INNER_PRODUCT;
            c.d = 5;
            const ScalarData data = makeScalar(c, one.type, byResidual);
            const auto index = data.makeIndex();
            faiss::gpu::GpuIndexIVFScalarQuantizer theirs(
                    sharedResources(), data.coded.get(), data.config());
            index->nprobe = c.nlist;
            theirs.nprobe = c.nlist;
            for (int i = 0; i < c.d; ++i) {
                const auto ours = componentOf(*index, i);
                EXPECT_EQ(ours, componentOf(theirs, i));
                // And as the oracle.
                for (int list = 0; list < c.nlist; ++list) {
                    const auto& lists = *data.oracle.cpu->invlists;
                    const auto* vectors = reinterpret_cast<const float*>(
                            lists.get_codes(list));
                    for (size_t v = 0; v < lists.list_size(list); ++v) {
                        ASSERT_EQ(
                                ours.at(lists.get_ids(list)[v]),
                                bitsOf(vectors[v * c.d + i]));
                    }
                }
            }
        }
    }
}

TEST_F(IvfScalarInFaiss, SmallDecodesAsTheCpuButForRounding) {
    for (const ScalarType& one : kScalarTypes) {
        SCOPED_TRACE(one.name);
        const IvfCase c = someCase();
        const ScalarData data = makeScalar(c, one.type, true);
        std::vector<float> theirs(c.d);
        std::vector<float> most(c.d, 256.0f); // before centroids are added
        const auto& trained = data.coded->sq.trained;
        for (int i = 0; !trained.empty() && i < c.d; ++i) {
            const size_t ranges = trained.size() / 2;
            const size_t range = ranges == 1 ? 0 : i;
            most[i] = std::abs(trained[range]) + trained[ranges + range];
        }
        for (int list = 0; list < c.nlist; ++list) {
            const auto& lists = *data.oracle.cpu->invlists;
            const auto* ours =
                    reinterpret_cast<const float*>(lists.get_codes(list));
            for (size_t v = 0; v < lists.list_size(list); ++v) {
                data.coded->reconstruct_from_offset(list, v, theirs.data());
                for (int i = 0; i < c.d; ++i) {
                    // Eight roundings, of numbers no greater.
                    const float size =
                            most[i] +
                            std::abs(
                                    data.oracle
                                            .centroids[size_t(list) * c.d + i]);
                    ASSERT_NEAR(
                            ours[v * c.d + i],
                            theirs[i],
                            std::ldexp(size, -21));
                }
            }
        }
    }
}

TEST_F(IvfScalarInFaiss, SmallTrainsAddsAndGoesBack) {
    for (const ScalarType& one : kScalarTypes) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            SCOPED_TRACE(one.name);
            IvfCase c = someCase();
            c.metric = metric;
            IvfData data(c);
            const bool byResidual = one.type != ScalarQuantizer::QT_8bit_direct;
            GpuIndexBitsIVFScalarQuantizer index(
                    sharedResources(),
                    c.d,
                    c.nlist,
                    one.type,
                    c.metric,
                    byResidual);
            EXPECT_NE(
                    dynamic_cast<GpuIndexBitsFlat*>(index.quantizer), nullptr);
            index.train(c.n, data.vectors.data());
            index.add_with_ids(c.n / 2, data.vectors.data(), data.ids.data());
            index.add_with_ids(
                    c.n - c.n / 2,
                    data.vectors.data() + c.n / 2 * c.d,
                    data.ids.data() + c.n / 2);
            ASSERT_EQ(index.ntotal, c.n);

            const std::unique_ptr<faiss::Index> back(
                    faiss::gpu::index_gpu_to_cpu(&index));
            const auto* cpu =
                    dynamic_cast<faiss::IndexIVFScalarQuantizer*>(back.get());
            ASSERT_NE(cpu, nullptr);
            ASSERT_EQ(cpu->ntotal, c.n);
            decodeLists(*cpu, data);
            index.nprobe = 5;
            const int k = 20;
            const SearchOutput found = searchOnHost(index, data.queries, k);
            data.expectExact(found, 5, k);

            index.reset();
            for (int64_t label : searchOnHost(index, data.queries, k).labels) {
                ASSERT_EQ(label, -1);
            }
            index.add_with_ids(c.n, data.vectors.data(), data.ids.data());
            EXPECT_TRUE(
                    sameOutput(searchOnHost(index, data.queries, k), found));
        }
    }
}

TEST_F(IvfScalarInFaiss, SmallClones) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        IvfCase c = someCase();
        c.metric = metric;
        const ScalarData data = makeScalar(c, ScalarQuantizer::QT_6bit, true);
        data.coded->nprobe = 3;
        // FAISS's constructor takes empty indexes alone.
        faiss::IndexIDMap map;
        map.d = c.d;
        map.metric_type = c.metric;
        map.index = data.coded.get();
        map.own_fields = false;
        map.is_trained = true;
        map.ntotal = data.coded->ntotal;
        for (bool inside : {false, true}) {
            const std::unique_ptr<faiss::Index> clone(gpu::index_cpu_to_gpu(
                    sharedResources(),
                    0,
                    inside ? static_cast<faiss::Index*>(&map)
                           : data.coded.get()));
            faiss::Index* found = clone.get();
            if (inside) {
                auto* outer = dynamic_cast<faiss::IndexIDMap*>(found);
                ASSERT_NE(outer, nullptr);
                found = outer->index;
            }
            auto* ours = dynamic_cast<GpuIndexBitsIVFScalarQuantizer*>(found);
            ASSERT_NE(ours, nullptr);
            EXPECT_NE(
                    dynamic_cast<GpuIndexBitsFlat*>(ours->quantizer), nullptr);
            EXPECT_EQ(ours->nprobe, 3);
            data.oracle.expectExact(
                    searchOnHost(*ours, data.oracle.queries, 9), 3, 9);
        }
        // Behind a transformation, which is none here.
        faiss::LinearTransform same(c.d, c.d, false);
        same.A.assign(size_t(c.d) * c.d, 0);
        for (int i = 0; i < c.d; ++i) {
            same.A[size_t(i) * c.d + i] = 1;
        }
        same.is_trained = true;
        faiss::IndexPreTransform transformed(&same, data.coded.get());
        const std::unique_ptr<faiss::Index> clone(
                gpu::index_cpu_to_gpu(sharedResources(), 0, &transformed));
        auto* outer = dynamic_cast<faiss::IndexPreTransform*>(clone.get());
        ASSERT_NE(outer, nullptr);
        EXPECT_NE(
                dynamic_cast<GpuIndexBitsIVFScalarQuantizer*>(outer->index),
                nullptr);
        data.oracle.expectExact(
                searchOnHost(*outer, data.oracle.queries, 9), 3, 9);
    }
}

TEST_F(IvfScalarInFaiss, SmallCopiesMoreProbesThanFaiss) {
    const ScalarData data =
            makeScalar(someCase(), ScalarQuantizer::QT_8bit, true);
    data.coded->nprobe = 5000;
    const auto index = data.makeIndex();
    EXPECT_EQ(index->nprobe, 5000);
    const auto& oracle = data.oracle;
    oracle.expectExact(
            searchOnHost(*index, oracle.queries, 9), data.c.nlist, 9);
    // FAISS's own copyFrom, of the base class.
    data.coded->nprobe = 2;
    static_cast<faiss::gpu::GpuIndexIVFScalarQuantizer*>(index.get())
            ->copyFrom(data.coded.get());
    oracle.expectExact(searchOnHost(*index, oracle.queries, 9), 2, 9);
    // What a caller writes into `sq` afterwards is not what FAISS decodes.
    index->sq.trained[0] += 1;
    oracle.expectExact(searchOnHost(*index, oracle.queries, 9), 2, 9);
}

TEST_F(IvfScalarInFaiss, SmallCopyThatFails) {
    IvfCase other = someCase();
    other.n = 700;
    other.d = 5;
    other.nlist = 4;
    other.metric = faiss::METRIC_INNER_PRODUCT;
    testCopyThatFails(
            makeScalar(someCase(), ScalarQuantizer::QT_8bit, true),
            makeScalar(other, ScalarQuantizer::QT_fp16, false));
}

TEST_F(IvfScalarInFaiss, SmallQuantizersOfOthers) {
    IvfCase c = someCase();
    faiss::gpu::StandardGpuResources others;
    others.setPinnedMemory(0);
    others.setTempMemory(size_t(16) << 20);
    IvfData data(c);
    faiss::gpu::GpuIndexFlat onGpu(&others, c.d, c.metric);
    onGpu.add(c.nlist, data.centroids.data());
    GpuIndexBitsFlat ours(&others, c.d, c.metric);
    ours.add(c.nlist, data.centroids.data());
    GpuIndexBitsFlatConfig half;
    half.useFloat16 = true;
    GpuIndexBitsFlat ofHalves(&others, c.d, c.metric, half);
    ofHalves.add(c.nlist, data.centroids.data());
    for (faiss::Index* quantizer :
         {static_cast<faiss::Index*>(&onGpu),
          static_cast<faiss::Index*>(&ours),
          static_cast<faiss::Index*>(&ofHalves),
          static_cast<faiss::Index*>(data.quantizer.get())}) {
        GpuIndexBitsIVFScalarQuantizer index(
                sharedResources(),
                quantizer,
                c.d,
                c.nlist,
                ScalarQuantizer::QT_8bit,
                c.metric);
        index.train(c.n, data.vectors.data());
        index.add_with_ids(c.n, data.vectors.data(), data.ids.data());
        index.nprobe = c.nlist;
        faiss::IndexIVFScalarQuantizer cpu;
        index.copyTo(&cpu);
        decodeLists(cpu, data);
        data.expectExact(searchOnDevice(index, data.queries, 30), c.nlist, 30);
    }
    // Centroids that nobody can read.
    GpuIndexBitsFlatConfig brain;
    brain.useBFloat16 = true;
    GpuIndexBitsFlat hidden(&others, c.d, c.metric, brain);
    hidden.add(c.nlist, data.centroids.data());
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                GpuIndexBitsIVFScalarQuantizer index(
                        sharedResources(),
                        &hidden,
                        c.d,
                        c.nlist,
                        ScalarQuantizer::QT_8bit,
                        c.metric);
            },
            "coarseQuantizer"));
}

} // namespace
} // namespace faiss_bits::test
