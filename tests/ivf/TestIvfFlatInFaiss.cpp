/// GpuIndexBitsIVFFlat where FAISS has a GpuIndexIVFFlat: training, adding,
/// copying, cloners, quantizers of all kinds.

#include <faiss/IndexHNSW.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/GpuIndexFlat.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {
namespace {

class IvfFlatInFaiss : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 1500;
    c.d = 12;
    c.nlist = 11;
    c.q = 60;
    return c;
}

TEST_F(IvfFlatInFaiss, SmallTrainsAndAdds) {
    IvfCase c = someCase();
    const IvfData data(c);
    GpuIndexBitsIVFFlat index(sharedResources(), c.d, c.nlist, c.metric);
    EXPECT_NE(dynamic_cast<GpuIndexBitsFlat*>(index.quantizer), nullptr);
    index.train(c.n, data.vectors.data());
    index.add_with_ids(c.n, data.vectors.data(), data.ids.data());
    EXPECT_EQ(index.ntotal, c.n);
    index.nprobe = c.nlist;
    // All lists: a flat search.
    const int k = 20;
    const SearchOutput found = searchOnHost(index, data.queries, k);
    data.expectExact(found, c.nlist, k);

    index.reset();
    for (int64_t label : searchOnHost(index, data.queries, k).labels) {
        ASSERT_EQ(label, -1);
    }
    index.add_with_ids(c.n, data.vectors.data(), data.ids.data());
    EXPECT_TRUE(sameOutput(searchOnHost(index, data.queries, k), found));
}

/// Lists of other lengths with as many vectors in all: a search remembers what
/// the longest had together.
TEST_F(IvfFlatInFaiss, SmallOtherListsOfAsManyVectors) {
    IvfCase c = someCase();
    c.q = 80;
    const IvfData data(c);
    const auto index = data.makeIndex();
    index->nprobe = 2;
    const int k = 20;
    const auto expectExact = [&] {
        index->copyTo(data.cpu.get());
        data.expectExact(searchOnHost(*index, data.queries, k), 2, k);
    };
    expectExact();
    // Nearly all in one list.
    std::vector<float> alike;
    for (int64_t i = 0; i < c.n; ++i) {
        alike.insert(
                alike.end(),
                data.vectors.begin(),
                data.vectors.begin() + c.d);
    }
    index->reset();
    index->add_with_ids(c.n, alike.data(), data.ids.data());
    ASSERT_EQ(index->ntotal, c.n);
    expectExact();
    // As many are removed as come.
    const int64_t some = c.n / 2;
    EXPECT_EQ(
            index->remove_ids(
                    faiss::IDSelectorArray(size_t(some), data.ids.data())),
            size_t(some));
    index->add_with_ids(some, data.vectors.data(), data.ids.data());
    ASSERT_EQ(index->ntotal, c.n);
    expectExact();
    index->update_vectors(c.n, data.ids.data(), data.vectors.data());
    ASSERT_EQ(index->ntotal, c.n);
    expectExact();
}

TEST_F(IvfFlatInFaiss, SmallClonesBothWays) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        IvfCase c = someCase();
        c.metric = metric;
        const IvfData data(c);
        data.cpu->nprobe = 3;
        const std::unique_ptr<faiss::Index> clone(
                gpu::index_cpu_to_gpu(sharedResources(), 0, data.cpu.get()));
        auto* ours = dynamic_cast<GpuIndexBitsIVFFlat*>(clone.get());
        ASSERT_NE(ours, nullptr);
        EXPECT_NE(dynamic_cast<GpuIndexBitsFlat*>(ours->quantizer), nullptr);
        EXPECT_EQ(ours->nprobe, 3);
        data.expectExact(searchOnHost(*ours, data.queries, 9), 3, 9);

        const std::unique_ptr<faiss::Index> back(
                faiss::gpu::index_gpu_to_cpu(ours));
        const auto* cpu = dynamic_cast<faiss::IndexIVFFlat*>(back.get());
        ASSERT_NE(cpu, nullptr);
        ASSERT_EQ(cpu->ntotal, c.n);
        EXPECT_EQ(cpu->nprobe, 3);
        for (int l = 0; l < c.nlist; ++l) {
            const size_t size = data.cpu->invlists->list_size(l);
            ASSERT_EQ(cpu->invlists->list_size(l), size);
            EXPECT_EQ(
                    std::memcmp(
                            cpu->invlists->get_codes(l),
                            data.cpu->invlists->get_codes(l),
                            size * c.d * sizeof(float)),
                    0);
        }
    }
}

TEST_F(IvfFlatInFaiss, SmallCopiesMoreProbesThanFaiss) {
    const IvfData data(someCase());
    data.cpu->nprobe = 5000;
    const auto index = data.makeIndex();
    EXPECT_EQ(index->nprobe, 5000);
    data.expectExact(searchOnHost(*index, data.queries, 9), data.c.nlist, 9);
    // FAISS's own copyFrom, of the base class.
    data.cpu->nprobe = 2;
    static_cast<faiss::gpu::GpuIndexIVFFlat*>(index.get())
            ->copyFrom(data.cpu.get());
    data.expectExact(searchOnHost(*index, data.queries, 9), 2, 9);
}

TEST_F(IvfFlatInFaiss, SmallQuantizersOfOthers) {
    const IvfData data(someCase());
    const auto& c = data.c;
    faiss::gpu::StandardGpuResources others;
    others.setPinnedMemory(0);
    others.setTempMemory(size_t(16) << 20);
    faiss::gpu::GpuIndexFlat onGpu(&others, c.d, c.metric);
    onGpu.add(c.nlist, data.centroids.data());
    GpuIndexBitsFlat ours(&others, c.d, c.metric);
    ours.add(c.nlist, data.centroids.data());
    for (faiss::Index* quantizer :
         {static_cast<faiss::Index*>(&onGpu),
          static_cast<faiss::Index*>(&ours),
          static_cast<faiss::Index*>(data.quantizer.get())}) {
        GpuIndexBitsIVFFlat index(
                sharedResources(), quantizer, c.d, c.nlist, c.metric);
        ASSERT_TRUE(index.is_trained);
        index.add_with_ids(c.n, data.vectors.data(), data.ids.data());
        index.nprobe = c.nlist;
        data.expectExact(searchOnDevice(index, data.queries, 30), c.nlist, 30);
    }
}

TEST_F(IvfFlatInFaiss, SmallAgreesWithFaiss) {
    // Numbers whose distances are exact in float32.
    IvfCase c = someCase();
    c.fill = Fill::Integers;
    const IvfData data(c);
    const auto index = data.makeIndex();
    faiss::gpu::GpuIndexIVFFlat theirs(
            sharedResources(), data.cpu.get(), data.config());
    for (int nprobe : {1, 4, 11}) {
        index->nprobe = nprobe;
        theirs.nprobe = nprobe;
        const int k = 10;
        EXPECT_EQ(
                searchOnHost(*index, data.queries, k).distances,
                searchOnHost(theirs, data.queries, k).distances);
    }
}

} // namespace
} // namespace faiss_bits::test
