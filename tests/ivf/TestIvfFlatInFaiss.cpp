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

/// Lists of other lengths with as many vectors in all, and in the longest: a
/// search remembers what the longest have together.
TEST_F(IvfFlatInFaiss, SmallOtherListsOfAsManyVectors) {
    IvfCase c = someCase();
    c.q = 80;
    const IvfData data(c);
    const auto index = data.makeIndex();
    index->nprobe = 2;
    const int k = 20;
    const auto expectExact = [&](const char* what) {
        SCOPED_TRACE(what);
        index->copyTo(data.cpu.get());
        data.expectExact(searchOnHost(*index, data.queries, k), 2, k);
    };
    // Half of them are the first centroid; the others are some of the vectors,
    // or the second centroid.
    const int64_t half = c.n / 2;
    const auto centroid = [&](int list) {
        std::vector<float> same;
        for (int64_t i = 0; i < half; ++i) {
            same.insert(
                    same.end(),
                    data.centroids.begin() + list * c.d,
                    data.centroids.begin() + (list + 1) * c.d);
        }
        return same;
    };
    const auto addHalf = [&](int64_t first, const float* x) {
        index->add_with_ids(half, x, data.ids.data() + first);
    };
    const auto first = centroid(0);
    const auto second = centroid(1);
    std::vector<int64_t> ofSome(half);
    data.cpu->quantizer->assign(half, data.vectors.data(), ofSome.data());
    // None of the first list, which stays the longest.
    std::vector<float> some;
    for (int64_t i = 0; i < half; ++i) {
        const float* x = ofSome[i] == 0 ? data.centroids.data() + 2 * c.d
                                        : data.vectors.data() + i * c.d;
        some.insert(some.end(), x, x + c.d);
    }
    expectExact("as made");
    index->reset();
    addHalf(0, first.data());
    addHalf(half, some.data());
    expectExact("the first list is long");
    index->reset();
    addHalf(0, first.data());
    addHalf(half, second.data());
    ASSERT_EQ(index->ntotal, c.n);
    expectExact("two lists are long");
    const auto isOfSecond = [&] {
        return faiss::IDSelectorArray(size_t(half), data.ids.data() + half);
    };
    EXPECT_EQ(index->remove_ids(isOfSecond()), size_t(half));
    addHalf(half, some.data());
    expectExact("the first list is long again");
    EXPECT_EQ(index->remove_ids(isOfSecond()), size_t(half));
    addHalf(half, second.data());
    expectExact("two lists are long again");
    index->update_vectors(half, data.ids.data() + half, some.data());
    expectExact("updated to one");
    index->update_vectors(half, data.ids.data() + half, second.data());
    ASSERT_EQ(index->ntotal, c.n);
    expectExact("updated to two");
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
