/// The sort of runs of entries, and the bound on CUB's scratch.

#include <numeric>

#include "kernels/select/large_k/RadixSort.h"
#include "kernels/select/large_k/SegmentSort.h"
#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

/// Entry.cuh's order in other words: a number's rank among the floats.
uint64_t entryOf(float key, int64_t column, bool largest) {
    uint32_t rank = 0xFFFFFFFFu;
    if (!std::isnan(key)) {
        const float value = key == 0 ? 0.f : largest ? -key : key;
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        rank = std::signbit(value) ? 0xFFFFFFFFu - bits : bits + 0x80000000u;
    }
    return uint64_t(rank) << 32 | uint64_t(column);
}

struct RunCase {
    int64_t rows = 1;
    int64_t stride = 1;
    DataType keyType = DataType::Float32;
    bool largest = false;
    bool byColumn = false;
    bool counted = true; ///< runs of several lengths, 0 among them

    std::string describe() const {
        std::ostringstream text;
        text << rows << " runs of at most " << stride << " " << nameOf(keyType)
             << (largest ? " largest" : " smallest")
             << (byColumn ? " by column" : "")
             << (counted ? " of several lengths" : "");
        return text.str();
    }
};

/// Runs of some columns of each row, sorted, against the oracle.
void expectSorts(const RunCase& c, int k) {
    SCOPED_TRACE(c.describe() + ", k=" + std::to_string(k));
    std::mt19937 random(uint32_t(c.stride));
    const int64_t cols = 2 * c.stride + 1;
    std::vector<float> keys;
    std::vector<uint64_t> entries(c.rows * c.stride, 0);
    std::vector<uint32_t> counts;
    std::vector<std::vector<Ranked>> expected;
    for (int64_t r = 0; r < c.rows; ++r) {
        auto row = makeRow(Values::SomeNan, cols, c.keyType, random);
        // Ties and zeros of both signs.
        for (int64_t i = 0; i < cols; i += 3) {
            row[i] = float(int(random() % 5) - 2) * (random() % 2 ? 1.f : -1.f);
        }
        roundAllTo(c.keyType, row);
        std::vector<int64_t> columns(cols);
        std::iota(columns.begin(), columns.end(), 0);
        std::shuffle(columns.begin(), columns.end(), random);
        const int64_t count = !c.counted ? c.stride
                : r == 1                 ? 0
                                         : random() % (c.stride + 1);
        columns.resize(count);
        if (c.byColumn) {
            std::sort(columns.begin(), columns.end());
        }
        std::vector<Ranked> ranked;
        for (int64_t i = 0; i < count; ++i) {
            entries[r * c.stride + i] =
                    entryOf(row[columns[i]], columns[i], c.largest);
            ranked.push_back({row[columns[i]], columns[i]});
        }
        counts.push_back(uint32_t(count));
        expected.push_back(topK(ranked, k, c.largest));
        keys.insert(keys.end(), row.begin(), row.end());
    }
    const DeviceBuffer<uint8_t> deviceKeys(packAs(c.keyType, keys));
    const DeviceBuffer<uint64_t> deviceEntries(entries);
    const DeviceBuffer<uint32_t> deviceCounts(counts);
    DeviceBuffer<uint8_t> outKeys(c.rows * k * sizeOf(c.keyType), kOutputByte);
    DeviceBuffer<int64_t> outIds(c.rows * k, kOutputByte);

    SelectProblem p;
    p.rows = c.rows;
    p.cols = cols;
    p.k = k;
    p.keyType = c.keyType;
    p.largest = c.largest;
    p.keys = deviceKeys.data();
    p.outKeys = outKeys.data();
    p.outIds = outIds.data();
    SegmentRuns runs;
    runs.rows = c.rows;
    runs.stride = c.stride;
    runs.entries = deviceEntries.data();
    runs.counts = c.counted ? deviceCounts.data() : nullptr;
    runs.byColumn = c.byColumn;
    const DeviceBuffer<uint8_t> scratch(
            segmentSortWorkspaceBytes(p, c.rows, c.stride, c.byColumn));
    runSegmentSort(p, runs, {scratch.data(), scratch.size()}, nullptr);

    const auto gotKeys = unpackFrom(c.keyType, outKeys.download());
    const auto gotIds = outIds.download();
    const float sentinel = c.largest ? -maxOf(c.keyType) : maxOf(c.keyType);
    for (int64_t r = 0; r < c.rows; ++r) {
        for (int64_t i = 0; i < k; ++i) {
            const bool filled = i < int64_t(expected[r].size());
            const int64_t id = filled ? expected[r][i].id : -1;
            const float key = filled ? keys[r * cols + id] : sentinel;
            ASSERT_EQ(gotIds[r * k + i], id) << "row " << r << ", place " << i;
            ASSERT_TRUE(sameBits(gotKeys[r * k + i], key))
                    << "row " << r << ", place " << i << ": "
                    << gotKeys[r * k + i] << " for " << key;
        }
    }
}

class SegmentSort : public GpuTest {};

TEST_F(SegmentSort, RunsOfEveryLength) {
    for (int64_t stride :
         {1,
          255,
          256,
          257,
          1024,
          1025,
          2048,
          2049,
          4096,
          4097,
          8191,
          8192,
          8193,
          20001}) {
        for (bool byColumn : {false, true}) {
            RunCase c;
            c.rows = 5;
            c.stride = stride;
            c.byColumn = byColumn;
            c.counted = stride % 2 == 1;
            expectSorts(c, int(stride + 1) / 2);
            expectSorts(c, int(stride) + 3);
        }
    }
}

TEST_F(SegmentSort, KeysOfEveryType) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (bool largest : {false, true}) {
            for (int64_t stride : {3000, 30000}) {
                RunCase c;
                c.rows = 3;
                c.stride = stride;
                c.keyType = type;
                c.largest = largest;
                c.byColumn = largest;
                expectSorts(c, int(stride));
            }
        }
    }
}

/// More rows than one sort takes, or one launch.
TEST_F(SegmentSort, ManyRuns) {
    RunCase c;
    c.rows = 1200;
    c.stride = 8200;
    expectSorts(c, 10);
    c.rows = 33000;
    c.stride = 20;
    expectSorts(c, 20);
}

TEST_F(SegmentSort, SmallRuns) {
    for (int64_t stride : {300, 9000}) {
        RunCase c;
        c.rows = 2;
        c.stride = stride;
        expectSorts(c, int(stride) - 5);
    }
}

class RadixSort : public GpuTest {};

/// Also: CUB never wants more scratch than the bound that needs no device.
TEST_F(RadixSort, SortsByTheBitsAsked) {
    std::mt19937_64 random(3);
    for (uint32_t items : {1u, 2u, 4863u, 4864u, 4865u, 300000u, 5000000u}) {
        for (auto [begin, end] :
             {std::pair<int, int>{0, 64}, {0, 53}, {20, 52}, {27, 59}}) {
            std::vector<uint64_t> keys(items);
            for (uint64_t& key : keys) {
                key = random();
            }
            const DeviceBuffer<uint64_t> first(keys);
            const DeviceBuffer<uint64_t> second(items);
            const DeviceBuffer<uint8_t> temp(radixSortTempBytes(items));
            const uint64_t* sorted = radixSort(
                    first.data(),
                    second.data(),
                    items,
                    begin,
                    end,
                    temp.data(),
                    temp.size(),
                    nullptr);
            const uint64_t mask = end - begin == 64
                    ? ~uint64_t(0)
                    : ((uint64_t(1) << (end - begin)) - 1) << begin;
            std::stable_sort(
                    keys.begin(), keys.end(), [&](uint64_t a, uint64_t b) {
                        return (a & mask) < (b & mask);
                    });
            ASSERT_TRUE(sorted == first.data() || sorted == second.data());
            ASSERT_EQ(
                    sorted == first.data() ? first.download()
                                           : second.download(),
                    keys)
                    << items << " keys by bits " << begin << " to " << end;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
