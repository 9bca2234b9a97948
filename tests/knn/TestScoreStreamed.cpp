/// Canonical distances of lists whose vectors stream through shared memory:
/// every place is that of the oracle, and no other is written.

#include <cstring>
#include <random>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Error.h"
#include "kernels/knn/fused/ScoreStreamed.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/Cases.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HardVectors.h"
#include "tests/common/HostTypes.h"

namespace faiss_bits::test {
namespace {

constexpr uint64_t kNoEntry = ~uint64_t(0);
constexpr uint64_t kUntouched = 0xA5A5A5A5A5A5A5A5ull;

struct ScoreCase {
    Metric metric = Metric::L2;
    DataType type = DataType::Float32;
    int d = 260;
    Hard data = Hard::Bytes;
    bool listed = false; // columns are places in a list, with holes
    int capacity = 300;
    std::vector<uint32_t> counts =
            {0, 1, 4, 5, 31, 32, 33, 64, 65, 257, 300, 301, 1u << 20};
    int repeats = 1; // of the counts
    int gap = 0;     // components behind each row of vectors
    bool leavesOverfull = false;

    std::string describe() const {
        return formatMessage(
                "%s %s d=%d data=%d%s, %d rows of each count, gap=%d%s",
                metricName(metric),
                nameOf(type).c_str(),
                d,
                int(data),
                listed ? " listed" : "",
                repeats,
                gap,
                leavesOverfull ? ", leaves overfull lists" : "");
    }
};

class ScoreStreamed : public GpuTest {
   protected:
    /// Nearer is less; then the lower id.
    static uint64_t entryOf(
            const ScoreCase& c,
            const float* query,
            const float* vector,
            int32_t id) {
        float key = canonicalDistance(c.metric, 2, query, vector, c.d);
        if (isSimilarity(c.metric)) {
            key = 0.0f - key;
        }
        if (std::isnan(key)) {
            return kNoEntry;
        }
        uint32_t bits;
        std::memcpy(&bits, &key, sizeof(bits));
        bits = std::signbit(key) ? ~bits : bits | 0x80000000u;
        return uint64_t(bits) << 32 | uint32_t(id);
    }

    static void expectDistances(const ScoreCase& c) {
        constexpr int kVectors = 211;
        std::vector<uint32_t> counts;
        for (int i = 0; i < c.repeats; ++i) {
            counts.insert(counts.end(), c.counts.begin(), c.counts.end());
        }
        const uint32_t rows = uint32_t(counts.size());
        std::vector<float> vectors = makeHard(c.data, kVectors, c.d, 3);
        const std::vector<float> queries = makeHard(c.data, rows, c.d, 4);
        roundAllTo(c.type, vectors);
        const int pitch = c.d + c.gap;
        std::vector<float> stored(size_t(kVectors) * pitch, std::nanf(""));
        for (int i = 0; i < kVectors; ++i) {
            std::copy_n(&vectors[i * c.d], c.d, &stored[size_t(i) * pitch]);
        }
        std::mt19937 random(5);
        std::vector<int32_t> ids(kVectors);
        for (int i = 0; i < kVectors; ++i) {
            ids[i] = i % 7 == 3 ? -1 : int(random() % kVectors);
        }
        std::vector<int32_t> columns(size_t(rows) * c.capacity);
        for (int32_t& column : columns) {
            column = int32_t(random() % kVectors);
        }

        const DeviceBuffer<uint8_t> deviceVectors(packAs(c.type, stored));
        const DeviceBuffer<float> deviceQueries(queries);
        const DeviceBuffer<int32_t> deviceColumns(columns);
        const DeviceBuffer<int32_t> deviceIds(ids);
        const DeviceBuffer<uint32_t> deviceCounts(counts);
        DeviceBuffer<uint64_t> entries(columns.size(), 0xA5);
        DeviceBuffer<unsigned long long> rescored(1, 0x00);
        PassedParams params;
        CertifiedParams& search = params.search;
        search.vectors = {deviceVectors.data(), c.type, pitch, 1};
        search.n = kVectors;
        search.d = c.d;
        search.queries = deviceQueries.data();
        search.rows = rows;
        search.k = 10;
        search.numCandidates = c.capacity;
        search.columns = deviceColumns.data();
        search.listedIds = c.listed ? deviceIds.data() : nullptr;
        search.entries = entries.data();
        search.numRescored = rescored.data();
        params.counts = deviceCounts.data();
        params.leavesOverfull = c.leavesOverfull;
        ASSERT_TRUE(canScoreStreamed(c.metric, search)) << c.describe();
        const TestStream stream;
        launchScoreStreamed(
                c.metric, params, deviceTraits().multiprocessors, stream);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));

        const std::vector<uint64_t> found = entries.download();
        unsigned long long scored = 0;
        for (uint32_t row = 0; row < rows; ++row) {
            const bool isLeft =
                    c.leavesOverfull && counts[row] > uint32_t(c.capacity);
            const uint32_t count = std::min(counts[row], uint32_t(c.capacity));
            scored += isLeft ? 0 : count;
            for (uint32_t i = 0; i < uint32_t(c.capacity); ++i) {
                const size_t at = size_t(row) * c.capacity + i;
                uint64_t want = isLeft ? kNoEntry : kUntouched;
                if (i < count && !isLeft) {
                    const int32_t id =
                            c.listed ? ids[columns[at]] : columns[at];
                    want = id < 0 ? kNoEntry
                                  : entryOf(c,
                                            &queries[size_t(row) * c.d],
                                            &vectors[size_t(id) * c.d],
                                            id);
                }
                ASSERT_EQ(found[at], want)
                        << "row " << row << ", place " << i << " of " << count
                        << ", " << c.describe();
            }
        }
        EXPECT_EQ(rescored.download()[0], scored) << c.describe();
    }
};

constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

/// Both sides of whole stages, of which a ring has four.
TEST_F(ScoreStreamed, SmallDimensions) {
    for (int d : {256, 260, 316, 320, 324, 572, 576, 764, 768, 772, 1536}) {
        ScoreCase c;
        c.d = d;
        c.metric = kProducts[d / 4 % 3];
        c.data = Hard::Mixed;
        c.listed = d % 8;
        c.gap = d % 12;
        expectDistances(c);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(ScoreStreamed, SmallTypes) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (int d : {512, 520, 632, 640, 648, 1528}) {
            ScoreCase c;
            c.type = type;
            c.d = d;
            c.metric = kProducts[d / 8 % 3];
            c.listed = d % 16;
            c.gap = 8 * (d % 16 == 0);
            expectDistances(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(ScoreStreamed, HardData) {
    for (Hard data : kHard) {
        for (Metric metric : kProducts) {
            ScoreCase c;
            c.metric = metric;
            c.data = data;
            c.repeats = 2;
            expectDistances(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Blocks have several rows each, or rows several blocks; eight turns of a
/// group, and more.
TEST_F(ScoreStreamed, ManyRowsOrLongLists) {
    ScoreCase c;
    c.capacity = 70;
    c.repeats = 70000 / int(c.counts.size()) + 1;
    c.counts = {1, 0, 3};
    expectDistances(c);
    c = {};
    c.capacity = 3000;
    c.counts = {3000, 2048, 2047, 1025, 3001, 256, 255, 257};
    expectDistances(c);
    c.repeats = 600;
    c.capacity = 520;
    c.counts = {520, 1, 513};
    expectDistances(c);
}

/// Rows that one block has, and rows that several have.
TEST_F(ScoreStreamed, LeavesOverfullLists) {
    for (int capacity : {70, 3000}) {
        for (int repeats : {1, 600}) {
            ScoreCase c;
            c.capacity = capacity;
            c.leavesOverfull = true;
            c.repeats = repeats;
            const uint32_t room = uint32_t(capacity);
            c.counts = {room + 1, 0, room, 1u << 20, 3, room + 300, room - 1};
            expectDistances(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST(ScoreStreamedChoice, WhatCanBeCopied) {
    CertifiedParams search;
    search.vectors = {nullptr, DataType::Float32, 256, 1};
    search.d = 256;
    EXPECT_TRUE(canScoreStreamed(Metric::L2, search));
    EXPECT_TRUE(canScoreStreamed(Metric::InnerProduct, search));
    EXPECT_TRUE(canScoreStreamed(Metric::Cosine, search));
    EXPECT_FALSE(canScoreStreamed(Metric::L1, search));
    EXPECT_THROW(launchScoreStreamed(Metric::L1, {search}, 1, nullptr), Error);
    const auto can = [&](auto change) {
        CertifiedParams changed = search;
        change(changed);
        return canScoreStreamed(Metric::L2, changed);
    };
    EXPECT_FALSE(can([](auto& s) { s.d = 252; })) << "short rows";
    EXPECT_FALSE(can([](auto& s) { s.d = 258; })) << "half of a piece";
    EXPECT_FALSE(can([](auto& s) { s.vectors.rowStride = 258; }));
    EXPECT_FALSE(can([](auto& s) { s.vectors.columnStride = 2; }));
    EXPECT_FALSE(can([](auto& s) { s.d = s.vectors.rowStride = 1540; }));
    EXPECT_FALSE(can([](auto& s) { s.vectors.type = DataType::Float16; }));
    EXPECT_FALSE(can([](auto& s) {
        s.vectors.data = reinterpret_cast<const void*>(uintptr_t(264));
    })) << "between pieces";
}

} // namespace
} // namespace faiss_bits::test
