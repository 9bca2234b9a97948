/// What goes into a GpuIndexBitsFlat and comes out again.

#include <cmath>

#include <faiss/gpu/GpuIndexFlat.h>

#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatStorage : public GpuTest {};

std::vector<float> slice(
        const std::vector<float>& vectors,
        int d,
        int64_t first,
        int64_t count) {
    return {vectors.begin() + first * d, vectors.begin() + (first + count) * d};
}

/// The index holds what the oracle of `data` holds, for searches that use
/// norms and for searches that do not.
void expectHolds(const FlatData& data, const GpuIndexBitsFlat& index) {
    ASSERT_EQ(index.ntotal, data.c.n);
    data.expectExact(searchOnHost(index, data.queries, 30), 30);
}

TEST_F(FlatStorage, SmallAddInPiecesFromHostAndDevice) {
    FlatCase c;
    c.n = 1003;
    c.d = 7; // pieces start off any alignment
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            for (bool reserved : {false, true}) {
                const FlatData data(kind);
                GpuIndexBitsFlat index(
                        sharedResources(),
                        c.d,
                        kind.metric,
                        configOf(kind.storage));
                if (reserved) {
                    index.reserve(c.n);
                }
                int64_t first = 0;
                bool onDevice = false;
                for (int64_t count : {1, 2, 500, 1, 499}) {
                    const auto piece = slice(data.vectors, c.d, first, count);
                    if (onDevice) {
                        const DeviceBuffer<float> buffer(piece);
                        index.add(count, buffer.data());
                        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
                    } else {
                        index.add(count, piece.data());
                    }
                    first += count;
                    onDevice = !onDevice;
                    ASSERT_EQ(index.ntotal, first);
                }
                expectHolds(data, index);
            }
        }
    }
}

TEST_F(FlatStorage, SmallResetAndRefill) {
    FlatCase c;
    c.fill = Fill::Integers;
    c.q = 40;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto index = data.makeIndex();
        index->reset();
        EXPECT_EQ(index->ntotal, 0);
        FlatCase none = kind;
        none.n = 0;
        const FlatData empty(none);
        empty.expectExact(searchOnHost(*index, empty.queries, 3), 3);
        index->add(c.n, data.vectors.data());
        expectHolds(data, *index);
    }
}

TEST_F(FlatStorage, SmallReserveKeepsTheVectors) {
    FlatCase c;
    c.fill = Fill::Integers;
    c.q = 40;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto index = data.makeIndex();
        index->reserve(5 * c.n);
        expectHolds(data, *index);
        index->reserve(0); // never less than what is there
        expectHolds(data, *index);
    }
}

TEST_F(FlatStorage, SmallUnifiedMemory) {
    FlatCase c;
    c.fill = Fill::Integers;
    const FlatData data(c);
    for (DataType storage : kStorages) {
        GpuIndexBitsFlatConfig config = configOf(storage);
        config.memorySpace = faiss::gpu::MemorySpace::Unified;
        GpuIndexBitsFlatL2 index(sharedResources(), c.d, config);
        index.add(c.n, data.vectors.data());
        expectHolds(data, index);
    }
}

TEST_F(FlatStorage, SmallFromAndToCpu) {
    FlatCase c;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            const FlatData data(kind);
            faiss::IndexFlat cpu(c.d, kind.metric);
            cpu.add(c.n, data.vectors.data());
            GpuIndexBitsFlat index(
                    sharedResources(), &cpu, configOf(kind.storage));
            EXPECT_EQ(index.metric_type, kind.metric);
            expectHolds(data, index);

            faiss::IndexFlat back;
            index.copyTo(&back);
            EXPECT_EQ(back.ntotal, c.n);
            EXPECT_EQ(back.d, c.d);
            EXPECT_EQ(back.metric_type, kind.metric);
            EXPECT_EQ(
                    std::vector<float>(
                            back.get_xb(), back.get_xb() + c.n * c.d),
                    data.vectors);

            // copyFrom replaces everything, dimensions and metric included.
            FlatCase other = kind;
            other.n = 77;
            other.d = 5;
            other.metric = kind.metric == faiss::METRIC_L2
                    ? faiss::METRIC_INNER_PRODUCT
                    : faiss::METRIC_L2;
            const FlatData otherData(other);
            faiss::IndexFlat otherCpu(other.d, other.metric);
            otherCpu.add(other.n, otherData.vectors.data());
            index.copyFrom(&otherCpu);
            EXPECT_EQ(index.d, other.d);
            expectHolds(otherData, index);

            const faiss::IndexFlat empty(9, kind.metric);
            index.copyFrom(&empty);
            EXPECT_EQ(index.ntotal, 0);
            EXPECT_EQ(index.d, 9);
        }
    }
}

TEST_F(FlatStorage, SmallSubclassesAndSharedResources) {
    FlatCase c;
    c.fill = Fill::Integers;
    const FlatData l2Data(c);
    faiss::IndexFlatL2 cpuL2(c.d);
    cpuL2.add(c.n, l2Data.vectors.data());
    const GpuIndexBitsFlatL2 l2(sharedResources()->getResources(), &cpuL2);
    expectHolds(l2Data, l2);

    c.metric = faiss::METRIC_INNER_PRODUCT;
    const FlatData ipData(c);
    faiss::IndexFlatIP cpuIP(c.d);
    cpuIP.add(c.n, ipData.vectors.data());
    const GpuIndexBitsFlatIP ip(sharedResources()->getResources(), &cpuIP);
    expectHolds(ipData, ip);

    GpuIndexBitsFlatIP added(sharedResources()->getResources(), c.d);
    added.add(c.n, ipData.vectors.data());
    expectHolds(ipData, added);
}

/// Through the base class copyFrom is FAISS's; the vectors must be the new
/// ones, norms and all.
TEST_F(FlatStorage, SmallBaseClassCopyFrom) {
    FlatCase c;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            if (kind.storage == DataType::BFloat16) {
                continue; // TestFlatBFloat16.cpp
            }
            FlatCase before = kind;
            before.seed = 77;
            const auto index = FlatData(before).makeIndex();
            const FlatData data(kind);
            faiss::IndexFlat cpu(c.d, kind.metric);
            cpu.add(c.n, data.vectors.data());
            index->faiss::gpu::GpuIndexFlat::copyFrom(&cpu);
            expectHolds(data, *index);
        }
    }
}

TEST_F(FlatStorage, SmallReconstruct) {
    FlatCase c;
    c.n = 300;
    c.d = 13;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        auto stored = data.vectors;
        roundAllTo(data.type(), stored);
        const auto index = data.makeIndex();

        for (int64_t key : {0, 150, 299}) {
            std::vector<float> one(c.d);
            index->reconstruct(key, one.data());
            EXPECT_EQ(one, slice(stored, c.d, key, 1)) << kind;
        }
        std::vector<float> some(200 * c.d);
        index->reconstruct_n(90, 200, some.data());
        EXPECT_EQ(some, slice(stored, c.d, 90, 200)) << kind;
        const DeviceBuffer<float> onDevice(200 * c.d);
        index->reconstruct_n(90, 200, onDevice.data());
        EXPECT_EQ(onDevice.download(), some) << kind;

        // -1 is "no neighbour".
        const std::vector<int64_t> keys = {299, -1, 0, 0, 17};
        std::vector<float> expected;
        for (int64_t key : keys) {
            const auto row = key < 0 ? std::vector<float>(c.d, 0.f)
                                     : slice(stored, c.d, key, 1);
            expected.insert(expected.end(), row.begin(), row.end());
        }
        std::vector<float> batch(keys.size() * c.d);
        index->reconstruct_batch(keys.size(), keys.data(), batch.data());
        EXPECT_EQ(batch, expected) << kind;

        // Keys on the device cannot be checked without waiting: those out of
        // range read nothing.
        const std::vector<int64_t> wild = {299, -7, 0, 0, 17};
        const DeviceBuffer<int64_t> wildKeys(wild);
        const DeviceBuffer<float> out(wild.size() * c.d);
        index->reconstruct_batch(wild.size(), wildKeys.data(), out.data());
        EXPECT_EQ(out.download(), expected) << kind;
    }
}

TEST_F(FlatStorage, SmallComputeResidual) {
    FlatCase c;
    c.n = 300;
    c.d = 300; // more than one turn of a block
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        auto stored = data.vectors;
        roundAllTo(data.type(), stored);
        const auto index = data.makeIndex();
        const std::vector<int64_t> keys = {5, -1, 299, 0};
        const auto xs = slice(data.queries, c.d, 0, keys.size());
        std::vector<float> residuals(keys.size() * c.d);
        index->compute_residual_n(
                keys.size(), xs.data(), residuals.data(), keys.data());
        const DeviceBuffer<float> deviceXs(xs);
        const DeviceBuffer<int64_t> deviceKeys(keys);
        const DeviceBuffer<float> deviceOut(residuals.size());
        index->compute_residual_n(
                keys.size(),
                deviceXs.data(),
                deviceOut.data(),
                deviceKeys.data());
        const auto fromDevice = deviceOut.download();
        for (size_t i = 0; i < keys.size(); ++i) {
            for (int j = 0; j < c.d; ++j) {
                const size_t at = i * c.d + j;
                const float expected = keys[i] < 0
                        ? std::nanf("")
                        : xs[at] - stored[keys[i] * c.d + j];
                ASSERT_TRUE(sameBits(residuals[at], expected)) << kind;
                ASSERT_TRUE(sameBits(fromDevice[at], expected)) << kind;
            }
        }
        std::vector<float> one(c.d);
        index->compute_residual(xs.data(), one.data(), keys[0]);
        EXPECT_EQ(one, slice(residuals, c.d, 0, 1)) << kind;
    }
}

TEST_F(FlatStorage, SmallSearchAndReconstruct) {
    FlatCase c;
    c.n = 3;
    c.d = 4;
    c.q = 2;
    c.fill = Fill::Integers;
    const FlatData data(c);
    const auto index = data.makeIndex();
    const int k = 5; // two places without a neighbour
    const auto expected = searchOnHost(*index, data.queries, k);
    SearchOutput out;
    out.distances.resize(c.q * k);
    out.labels.resize(c.q * k);
    std::vector<float> vectors(c.q * k * c.d, -1.f);
    index->search_and_reconstruct(
            c.q,
            data.queries.data(),
            k,
            out.distances.data(),
            out.labels.data(),
            vectors.data());
    EXPECT_TRUE(sameOutput(out, expected));
    for (int64_t i = 0; i < c.q * k; ++i) {
        for (int j = 0; j < c.d; ++j) {
            const int64_t label = out.labels[i];
            EXPECT_EQ(
                    vectors[i * c.d + j],
                    label < 0 ? 0.f : data.vectors[label * c.d + j]);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
