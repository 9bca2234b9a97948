/// The scan of repeated queries, some of whose blocks come late to every step:
/// where several programs share a GPU, kernels are suspended, and their blocks
/// go on at different times.

#include <bit>
#include <string>
#include <vector>

#include "kernels/knn/certified/CertifiedLaunch.cuh"
#include "tests/knn/ScanAgainHarness.h"

namespace faiss_bits::test {
namespace {

/// Blocks of which the number modulo `every` is `which`.
struct Late {
    uint32_t every = 1;
    uint32_t which = 0;
};

__constant__ Late lateBlocks;

/// Late blocks begin when others have long appended what they found.
struct SomeBeginLate {
    __device__ static void wait() {
        constexpr uint64_t kNanoseconds = 100'000;
        if (blockIdx.x % lateBlocks.every != lateBlocks.which) {
            return;
        }
        uint64_t begin = 0;
        uint64_t now = 0;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
        do {
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        } while (now - begin < kNanoseconds);
    }
};

/// With blocks late and without.
void expectNearest(const ScanCase& c) {
    expectScanned(
            c,
            makeIntegers(size_t(c.n) * c.d, 1),
            makeIntegers(size_t(c.q) * c.d, 2),
            [](const ScanAgainParams& params, const auto& check) {
                const TestStream stream;
                const uint32_t last = uint32_t(multiprocessorCount()) - 1;
                // None; the first, the last, and every third.
                for (const Late late :
                     {Late{1, 1},
                      Late{last + 1, 0},
                      Late{last + 1, last},
                      Late{3, 1}}) {
                    SCOPED_TRACE(
                            "late: " + std::to_string(late.which) + " modulo " +
                            std::to_string(late.every));
                    BITS_CUDA_CHECK(cudaMemcpyToSymbol(
                            lateBlocks, &late, sizeof(late)));
                    launchScan<Metric::L2, SomeBeginLate>(
                            params, multiprocessorCount(), stream);
                    check();
                }
            });
}

class ScanAgainTest : public GpuTest {};

/// Steps are done again, in lists side by side that have little room.
TEST_F(ScanAgainTest, FewRows) {
    expectNearest({});
}

/// More than are met at a time.
TEST_F(ScanAgainTest, SevenRows) {
    ScanCase c;
    c.q = 7;
    c.d = 67;
    expectNearest(c);
}

/// Around kFewSlots, met by eight lanes, by bounds first and in tiles.
TEST_F(ScanAgainTest, RowsOfTiles) {
    ScanCase c;
    for (uint32_t q : {8u, 9u, 16u, 17u, 20u}) {
        c.q = q;
        expectNearest(c);
    }
}

/// Enough room for every step.
TEST_F(ScanAgainTest, SmallWithoutOverflow) {
    ScanCase c;
    c.n = 3000;
    c.k = 50;
    expectNearest(c);
}

/// Lists that a warp cuts, as blocks have several, in more than one turn.
TEST_F(ScanAgainTest, MoreRowsThanBlocks) {
    ScanCase c;
    c.n = 9011;
    c.k = 37;
    c.q = uint32_t(kMaxScanSlots) + 3;
    expectNearest(c);
}

/// Sorted by all blocks, for one row too.
TEST_F(ScanAgainTest, LongLists) {
    ScanCase c;
    for (int k : {6144, 6145, 12289, 20000, 40000}) {
        c.k = k;
        for (uint32_t q : {1u, 3u, 12u}) {
            c.q = q;
            expectNearest(c);
        }
    }
}

/// The one nearest, without lists where rows make tiles; thousands are equal.
TEST_F(ScanAgainTest, OneNearest) {
    ScanCase c;
    c.k = 1;
    for (uint32_t q : {16u, 17u, 64u, 65u, 200u, uint32_t(kMaxScanSlots) + 3}) {
        for (int d : {2, 11}) {
            c.q = q;
            c.d = d;
            expectNearest(c);
        }
    }
}

/// Rows that may be met by bounds first, which asks for limits that others
/// lower meanwhile, if components are apart: then they are not few.
TEST_F(ScanAgainTest, OneNearestByColumns) {
    ScanCase c;
    c.k = 1;
    c.isByColumns = true;
    for (uint32_t q : {8u, 9u, 12u, 16u, 17u, 64u}) {
        for (int d : {5, 20}) {
            c.q = q;
            c.d = d;
            expectNearest(c);
        }
    }
}

/// Of two components there are 81 vectors.
ScanCase caseOfSets(uint32_t q) {
    ScanCase c;
    c.d = 2;
    c.q = q;
    c.k = 300;
    c.mostSets = 4096;
    c.roomOfKeys = 4096;
    return c;
}

/// All that is within the limits is found in one step.
TEST_F(ScanAgainTest, SetsOfEqualVectors) {
    expectNearest(caseOfSets(3));
    expectNearest(caseOfSets(20));
}

/// More are equal than a list has room for: 6,668 of each.
TEST_F(ScanAgainTest, LargeSets) {
    ScanCase c = caseOfSets(20);
    c.n = 60011;
    c.d = 1;
    c.k = 50;
    expectNearest(c);
}

/// Keys of two rows at a time.
TEST_F(ScanAgainTest, SetsOfFewRowsAtATime) {
    ScanCase c = caseOfSets(9);
    c.mostSets = 100;
    c.roomOfKeys = 200;
    expectNearest(c);
}

/// Vectors are scanned one by one.
TEST_F(ScanAgainTest, TooManySets) {
    ScanCase c = caseOfSets(20);
    c.mostSets = c.roomOfKeys = 80;
    expectNearest(c);
    c.mostSets = c.roomOfKeys = 1;
    expectNearest(c);
}

TEST_F(ScanAgainTest, SmallSets) {
    ScanCase c = caseOfSets(3);
    c.n = 3000;
    c.k = 50;
    expectNearest(c);
    c.k = 3500; // more than there are
    expectNearest(c);
}

/// Rows of candidates that are too many alike to be ranked, which a block sorts
/// and proves; its flags are gone before late blocks begin.
TEST_F(ScanAgainTest, SmallAlikeRows) {
    constexpr int kN = 500;
    constexpr int kD = 4;
    for (const uint32_t q : {1u, 3u}) {
        const auto vectors = makeIntegers(kN * kD, 3);
        const auto queries = makeIntegers(q * kD, 4);
        std::vector<std::vector<Ranked>> want;
        std::vector<uint64_t> candidates; // farthest first
        std::vector<int32_t> columns;
        for (uint32_t row = 0; row < q; ++row) {
            want.push_back(canonicalTopK(
                    Metric::L2,
                    2,
                    queries.data() + row * kD,
                    vectors.data(),
                    kN,
                    kD,
                    kN));
            for (int i = kN - 1; i >= 0; --i) {
                const Ranked& one = want.back()[i];
                const uint32_t bits = std::bit_cast<uint32_t>(float(one.key));
                candidates.push_back(
                        uint64_t(bits | 0x80000000u) << 32 | uint32_t(one.id));
                columns.push_back(int32_t(one.id));
            }
        }
        const DeviceBuffer<float> deviceVectors(vectors);
        const DeviceBuffer<float> deviceQueries(queries);
        DeviceBuffer<uint64_t> entries(candidates);
        const DeviceBuffer<int32_t> deviceColumns(columns);
        const DeviceBuffer<float> keys(columns.size(), 0);
        const DeviceBuffer<float> greatestNorm(std::vector<float>{64});
        DeviceBuffer<uint8_t> flags(2 * q);
        DeviceBuffer<float> distances(q * kN);
        DeviceBuffer<int64_t> ids(q * kN);
        constexpr int64_t kCapacity = kN + 4096;
        const DeviceBuffer<uint64_t> lists(q * kCapacity);
        const DeviceBuffer<uint32_t> counts(q);
        const DeviceBuffer<uint64_t> limits(q);

        ScanAgainParams params;
        params.search.vectors = {
                deviceVectors.data(), DataType::Float32, kD, 1};
        params.search.n = kN;
        params.search.d = kD;
        params.search.numAllowed = kN;
        params.search.queries = deviceQueries.data();
        params.search.rows = q;
        params.search.k = kN;
        params.search.numCandidates = kN;
        params.search.keys = keys.data();
        params.search.columns = deviceColumns.data();
        params.search.entries = entries.data();
        params.search.greatestNorm = greatestNorm.data();
        params.search.flags = flags.data();
        params.search.outDistances = distances.data();
        params.search.outIds = ids.data();
        params.lists = lists.data();
        params.counts = counts.data();
        params.limits = limits.data();
        params.slots = q;
        params.keep = kN;
        params.capacity = kCapacity;
        params.mayBeAlike = true;
        const TestStream stream;
        const uint32_t last = uint32_t(multiprocessorCount()) - 1;
        for (const Late late : {Late{1, 1}, Late{last + 1, last}, Late{3, 1}}) {
            SCOPED_TRACE(
                    "late: " + std::to_string(late.which) + " modulo " +
                    std::to_string(late.every));
            BITS_CUDA_CHECK(
                    cudaMemcpyToSymbol(lateBlocks, &late, sizeof(late)));
            flags.upload(std::vector<uint8_t>(2 * q, 1));
            distances.fillBytes(0xFF);
            ids.fillBytes(0xFF); // waits
            launchScan<Metric::L2, SomeBeginLate>(
                    params, multiprocessorCount(), stream);
            const auto outDistances = distances.download();
            const auto outIds = ids.download();
            EXPECT_EQ(flags.download(), std::vector<uint8_t>(2 * q, 0))
                    << "a row was not proved";
            for (uint32_t row = 0; row < q; ++row) {
                EXPECT_TRUE(isCanonical(
                        want[row],
                        false,
                        outDistances.data() + int64_t(row) * kN,
                        outIds.data() + int64_t(row) * kN,
                        kN))
                        << "row " << row;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
