/// Lists of what passed a scan, or bits, and what launchFinishPassed makes of
/// them, against a search among their members alone.
#pragma once

#include <numeric>
#include <random>
#include <sstream>

#include "kernels/knn/fused/FinishPassed.h"
#include "kernels/knn/fused/ScoreFew.h"
#include "kernels/knn/fused/ScoreRows.h"
#include "kernels/knn/fused/SlotRows.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/Cases.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HardVectors.h"
#include "tests/common/HostTypes.h"

namespace faiss_bits::test {
struct FinishCase {
    Metric metric = Metric::L2;
    DataType type = DataType::Float32;
    IdType idType = IdType::Int64;
    int d = 24;
    int k = 10;
    Hard data = Hard::Bytes;
    bool columnMajor = false;
    bool listed = false; ///< columns are places in a list, with holes
    int64_t n = 700;
    uint32_t repeats = 1;    ///< of the lengths
    uint32_t capacity = 320; ///< of a list
    bool bySlots = false;    ///< from a copy of the vectors
    bool byBits = false;     ///< the same, in place of lists
    /// The same by eight lanes a row, which leave rows that are too full alone;
    /// few: by the kernel of few places.
    enum class Eights { None, Rows, Few } eights = Eights::None;
    /// Of the device, for Eights::Rows; 0: as many as it has.
    int multiprocessors = 0;

    std::string describe() const {
        std::ostringstream text;
        text << metricName(metric) << " " << nameOf(type) << " d=" << d
             << " k=" << k << " data=" << int(data)
             << (columnMajor ? " column-major" : "")
             << (listed ? " listed" : "")
             << (idType == IdType::Int32 ? " ids of 32 bits" : "") << " n=" << n
             << " capacity=" << capacity << (byBits ? " by bits" : "")
             << (bySlots ? " by slots" : "") << " eights=" << int(eights);
        return text.str();
    }
};

/// What a row's list is known to be complete to.
enum class Complete { All, ToTheLast, NotToTheLast, Nothing, NoNumber };
constexpr int kCompletes = 5;

class FinishPassed : public GpuTest {
   protected:
    static std::vector<uint32_t> countsOf(const FinishCase& c) {
        std::vector<uint32_t> counts;
        for (uint32_t i = 0; i < c.repeats * kCompletes; ++i) {
            for (uint32_t count : {0u,         1u,
                                   4u,         5u,
                                   8u,         9u,
                                   31u,        32u,
                                   33u,        40u,
                                   64u,        65u,
                                   127u,       129u,
                                   255u,       256u,
                                   257u,       289u,
                                   1024u,      1025u,
                                   c.capacity, c.capacity + 1,
                                   1u << 20}) {
                // Bits are of different vectors.
                counts.push_back(
                        c.byBits ? std::min(count, uint32_t(c.n)) : count);
            }
        }
        return counts;
    }

    static float key(const FinishCase& c, double distance) {
        return float(isSimilarity(c.metric) ? -distance : distance);
    }

    void expectResults(const FinishCase& c) {
        const std::vector<uint32_t> counts = countsOf(c);
        const uint32_t rows = uint32_t(counts.size());
        std::vector<float> vectors = makeHard(c.data, c.n, c.d, 3);
        const std::vector<float> queries = makeHard(c.data, rows, c.d, 4);
        roundAllTo(c.type, vectors);
        std::vector<float> stored = vectors;
        for (int64_t i = 0; c.columnMajor && i < c.n; ++i) {
            for (int j = 0; j < c.d; ++j) {
                stored[j * c.n + i] = vectors[i * c.d + j];
            }
        }
        // The lists, and what a search among their members alone finds.
        std::mt19937 random(5);
        std::vector<int32_t> ids(c.n);
        std::iota(ids.begin(), ids.end(), 0);
        std::shuffle(ids.begin(), ids.end(), random);
        for (int64_t i = 0; c.listed && i < c.n; i += 37) {
            ids[i] = -1;
        }
        std::vector<int32_t> columns(size_t(rows) * c.capacity, -1);
        const uint32_t words = uint32_t((c.n + 31) / 32) + 1;
        std::vector<uint32_t> bits(c.byBits ? size_t(rows) * words : 1);
        const SpreadRows spread = spreadRowsOf(c.n);
        std::vector<std::vector<Ranked>> want;
        std::vector<float> complete;
        std::vector<int> flags;
        for (uint32_t row = 0; row < rows; ++row) {
            std::vector<int32_t> members(c.n);
            std::iota(members.begin(), members.end(), 0);
            std::shuffle(members.begin(), members.end(), random);
            if (c.byBits) {
                // In the order of the bits.
                std::sort(
                        members.begin(),
                        members.begin() + counts[row],
                        [&](int32_t a, int32_t b) {
                            return spread.rowOf(a) < spread.rowOf(b);
                        });
                for (uint32_t i = 0; i < counts[row]; ++i) {
                    const uint32_t bit = spread.rowOf(members[i]);
                    bits[size_t(row) * words + bit / 32] |= 1u << bit % 32;
                }
            }
            const uint32_t count = std::min(counts[row], c.capacity);
            std::vector<float> seen(vectors.size(), std::nanf(""));
            for (uint32_t i = 0; i < count; ++i) {
                const int32_t member = members[i];
                columns[size_t(row) * c.capacity + i] = member;
                const int64_t id = c.listed ? ids[member] : member;
                if (id < 0) {
                    continue;
                }
                std::copy_n(
                        vectors.begin() + id * c.d,
                        c.d,
                        seen.begin() + id * c.d);
            }
            const float* q = queries.data() + size_t(row) * c.d;
            want.push_back(
                    canonicalTopK(c.metric, 2, q, seen.data(), c.n, c.d, c.k));
            const bool full = int(want.back().size()) == c.k;
            const float last = full ? key(c, want.back().back().key) : 0;
            const bool overflows = counts[row] > c.capacity;
            constexpr float kMost = std::numeric_limits<float>::infinity();
            switch (Complete(row / (rows / kCompletes))) {
                case Complete::All:
                    complete.push_back(kMost);
                    flags.push_back(overflows);
                    break;
                case Complete::ToTheLast:
                    complete.push_back(last);
                    flags.push_back(overflows || !(full || last == kMost));
                    break;
                case Complete::NotToTheLast:
                    complete.push_back(std::nextafter(last, -kMost));
                    flags.push_back(true);
                    break;
                case Complete::Nothing:
                    complete.push_back(-kMost);
                    flags.push_back(true);
                    break;
                case Complete::NoNumber:
                    complete.push_back(std::nanf(""));
                    flags.push_back(false);
                    break;
            }
            if (complete.back() == -kMost) {
                flags.back() = 1; // nothing is known, of minus infinity too
            }
        }

        const DeviceBuffer<uint8_t> deviceVectors(packAs(c.type, stored));
        const DeviceBuffer<float> deviceQueries(queries);
        const DeviceBuffer<int32_t> deviceColumns(columns);
        const DeviceBuffer<int32_t> deviceIds(ids);
        DeviceBuffer<uint32_t> deviceCounts(
                c.byBits ? std::vector<uint32_t>(rows, 1u << 30) : counts);
        const DeviceBuffer<uint32_t> deviceBits(bits);
        const DeviceBuffer<float> deviceComplete(complete);
        DeviceBuffer<float> outDistances(size_t(rows) * c.k, 0xA5);
        DeviceBuffer<uint8_t> outIds(
                size_t(rows) * c.k * sizeOf(c.idType), 0xA5);
        DeviceBuffer<uint8_t> outFlags(2 * rows, 0xA5);
        DeviceBuffer<unsigned long long> rescored(1, 0x00);
        DeviceBuffer<uint64_t> entries(size_t(rows) * c.capacity, 0xA5);
        DeviceBuffer<float> slotRows(slotCopySize(c.n, c.d), 0xA5);
        FinishPassedParams params;
        CertifiedParams& search = params.passed.search;
        search.vectors = {
                deviceVectors.data(),
                c.type,
                c.columnMajor ? 1 : c.d,
                c.columnMajor ? c.n : 1};
        search.n = c.n;
        search.d = c.d;
        search.queries = deviceQueries.data();
        search.rows = rows;
        search.k = c.k;
        search.numCandidates = int(c.capacity);
        search.columns = deviceColumns.data();
        search.listedIds = c.listed ? deviceIds.data() : nullptr;
        search.flags = outFlags.data();
        search.numRescored = rescored.data();
        search.outDistances = outDistances.data();
        search.outIds = outIds.data();
        search.ids64 = c.idType == IdType::Int64;
        params.passed.counts = deviceCounts.data();
        params.complete = deviceComplete.data();
        const TestStream stream;
        if (c.bySlots) {
            search.entries = entries.data();
            launchSlotRows(search.vectors, c.n, c.d, slotRows.data(), stream);
            params.slotRows = slotRows.data();
            if (c.byBits) {
                params.words = {
                        deviceBits.data(), words, deviceCounts.data(), spread};
            }
        }
        const ScoreSlotsParams scores{
                params.passed,
                params.words,
                reinterpret_cast<const float4*>(params.slotRows),
                params.complete};
        switch (c.eights) {
            case FinishCase::Eights::None:
                launchFinishPassed(c.metric, params, deviceTraits(), stream);
                break;
            case FinishCase::Eights::Rows: {
                DeviceTraits device = deviceTraits();
                if (c.multiprocessors > 0) {
                    device.multiprocessors = c.multiprocessors;
                }
                launchScoreRows(c.metric, scores, device, stream);
                break;
            }
            case FinishCase::Eights::Few:
                launchScoreFew(c.metric, scores, stream);
                break;
        }
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));

        const auto distances = outDistances.download();
        const auto found = unpackIds(c.idType, outIds.download());
        const auto proved = outFlags.download();
        unsigned long long scored = 0;
        for (uint32_t row = 0; row < rows; ++row) {
            // A row of bits finds out while it scores.
            const bool findsOut = c.eights == FinishCase::Eights::None &&
                    c.byBits && c.k <= kMostSlotK;
            const bool isLeft = !findsOut && counts[row] > c.capacity;
            ASSERT_TRUE(
                    isLeft ||
                    isCanonical(
                            want[row],
                            isSimilarity(c.metric),
                            distances.data() + size_t(row) * c.k,
                            found.data() + size_t(row) * c.k,
                            c.k))
                    << "row " << row << ", " << counts[row] << " entries, "
                    << c.describe();
            ASSERT_EQ(int(proved[2 * row]), flags[row])
                    << "row " << row << ", " << counts[row]
                    << " entries, complete to " << complete[row] << ", "
                    << c.describe();
            ASSERT_EQ(int(proved[2 * row + 1]), 0) << c.describe();
            scored += isLeft ? 0 : std::min(counts[row], c.capacity);
        }
        EXPECT_EQ(rescored.download()[0], scored) << c.describe();
    }
};

inline constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

} // namespace faiss_bits::test
