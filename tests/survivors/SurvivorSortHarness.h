#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/survivors/SurvivorSort.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"
#include "tests/select/SelectCase.h"

/// Runs runSurvivorSort or runSurvivors on entries made here and holds the
/// result against the oracle.
namespace faiss_bits::test {

/// Entry.cuh's order in other words: a number's rank among the floats.
inline uint64_t entryOf(float key, int64_t column, bool largest) {
    uint32_t rank = 0xFFFFFFFFu;
    if (!std::isnan(key)) {
        const float value = key == 0 ? 0.f : largest ? -key : key;
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        rank = std::signbit(value) ? 0xFFFFFFFFu - bits : bits + 0x80000000u;
    }
    return uint64_t(rank) << 32 | uint64_t(column);
}

enum class Order { Shuffled, ByColumn, BestFirst, BestLast };

/// Values beside those of tests/common/Cases.h.
enum class Extra {
    None,
    Skewed,      ///< exp of a wide normal distribution: all exponents
    OneFarAway,  ///< one key far below the others, and one far above
    ThousandKeys ///< so many distinct keys, at uneven distances
};

struct SortCase {
    int64_t rows = 1;
    int64_t cols = 1;
    int64_t capacity = 0;        ///< 0: the largest count
    std::vector<int64_t> counts; ///< of the rows, again and again
    Values values = Values::Random;
    Extra extra = Extra::None;
    Order order = Order::Shuffled;
    DataType keyType = DataType::Float32;
    IdType idType = IdType::Int64;
    bool largest = false;
    bool sorted = true;
    bool bias = false;
    uint32_t bucket = kSurvivorBucket;
    int64_t firstRow = 0; ///< rows of the result that are left alone

    bool dropNan = false;
    bool givenIds = false;
    bool hasKeys = true;  ///< in memory, for the special ones
    bool limits = false;  ///< an entry that about k are not above
    bool bySort = true;   ///< runSurvivorSort; false: runSurvivors
    bool tellCols = true; ///< the list's bound of columns is that of the case
    int64_t lost = 0; ///< counts of full lists say so many more than there are

    std::string describe() const {
        std::ostringstream text;
        text << rows << " rows of " << counts[0] << " of " << cols << " "
             << nameOf(values) << " extra=" << int(extra)
             << " order=" << int(order) << " " << nameOf(keyType)
             << (largest ? " largest" : " smallest")
             << (idType == IdType::Int32 ? " ids32" : " ids64")
             << (sorted ? "" : " unsorted") << (bias ? " bias" : "")
             << " bucket=" << bucket << " capacity=" << capacity
             << (dropNan ? " dropNan" : "") << (givenIds ? " given" : "")
             << (hasKeys ? "" : " noKeys") << (limits ? " limits" : "")
             << (bySort ? "" : " select") << (tellCols ? "" : " anyCols")
             << " lost=" << lost;
        return text.str();
    }
};

inline std::vector<float> makeKeys(const SortCase& c, std::mt19937& random) {
    if (c.extra == Extra::None) {
        return makeRow(c.values, c.cols, c.keyType, random);
    }
    std::vector<float> distinct(1000);
    std::lognormal_distribution<float> wide(0.f, 12.f);
    std::generate(
            distinct.begin(), distinct.end(), [&] { return wide(random); });
    std::uniform_real_distribution<float> near(100.f, 101.f);
    std::vector<float> keys(c.cols);
    for (float& key : keys) {
        key = c.extra == Extra::Skewed         ? wide(random)
                : c.extra == Extra::OneFarAway ? near(random)
                                               : distinct[random() % 1000];
    }
    if (c.extra == Extra::OneFarAway) {
        keys[c.cols / 3] = -3e38f;
        keys[c.cols / 2] = 3e38f;
    }
    return keys;
}

/// The inputs of one case, and what comes out.
class SortData {
   public:
    explicit SortData(const SortCase& c) : case_(c) {
        std::mt19937 random(uint32_t(c.cols + 7 * c.rows));
        capacity_ = c.capacity
                ? c.capacity
                : *std::max_element(c.counts.begin(), c.counts.end());
        entries_ = DeviceBuffer<uint64_t>(c.rows * capacity_);
        std::vector<uint32_t> counts;
        for (int64_t i = 0; c.bias && i < c.cols; ++i) {
            colBias_.push_back(float(int(random() % 64) - 24) / 16.f);
        }
        for (int64_t r = 0; r < c.rows; ++r) {
            const int64_t count = c.counts[r % c.counts.size()];
            const int64_t lost = count == capacity_ ? c.lost : 0;
            counts.push_back(uint32_t(count + lost));
            addRow(r, count, random);
        }
        if (c.givenIds) {
            ids_ = makeIds(c.rows * c.cols, c.idType == IdType::Int32, random);
            deviceIds_ = DeviceBuffer<uint8_t>(packIds(c.idType, ids_));
        }
        counts_ = DeviceBuffer<uint32_t>(counts);
        deviceKeys_ = DeviceBuffer<uint8_t>(packAs(c.keyType, keys_));
        deviceBias_ = DeviceBuffer<float>(colBias_);
    }

    void expectSorts(int k) const {
        SCOPED_TRACE(case_.describe() + ", k=" + std::to_string(k));
        const SelectResult first = run(k, 0xFF);
        check(k, first);
        const SelectResult second = run(k, 0x00);
        if (case_.sorted) {
            ASSERT_TRUE(first == second) << "two runs differ";
        } else {
            check(k, second);
        }
    }

   private:
    void addRow(int64_t r, int64_t count, std::mt19937& random) {
        const SortCase& c = case_;
        std::vector<float> row = makeKeys(c, random);
        roundAllTo(c.keyType, row);
        keys_.insert(keys_.end(), row.begin(), row.end());
        for (size_t i = 0; i < colBias_.size(); ++i) {
            row[i] = std::max(0.f, (row[i] + colBias_[i]) + 0.f);
        }
        compared_.insert(compared_.end(), row.begin(), row.end());
        std::vector<int64_t> columns(c.cols);
        std::iota(columns.begin(), columns.end(), 0);
        std::shuffle(columns.begin(), columns.end(), random);
        columns.resize(count);
        std::vector<Ranked> ranked;
        std::vector<uint64_t> entries;
        for (int64_t column : columns) {
            entries.push_back(entryOf(row[column], column, c.largest));
            if (!c.dropNan || !std::isnan(row[column])) {
                ranked.push_back({row[column], column});
            }
        }
        if (c.order == Order::ByColumn) {
            std::sort(entries.begin(), entries.end(), [](auto a, auto b) {
                return uint32_t(a) < uint32_t(b);
            });
        } else if (c.order == Order::BestFirst) {
            std::sort(entries.begin(), entries.end());
        } else if (c.order == Order::BestLast) {
            std::sort(entries.rbegin(), entries.rend());
        }
        BITS_CUDA_CHECK(cudaMemcpy(
                entries_.data() + r * capacity_,
                entries.data(),
                entries.size() * sizeof(uint64_t),
                cudaMemcpyHostToDevice));
        expected_.push_back(topK(ranked, count, c.largest));
        std::sort(entries.begin(), entries.end());
        sorted_.push_back(std::move(entries));
    }

    /// Entries that a few more than k of their rows are not above.
    DeviceBuffer<uint64_t> limitsFor(int k) const {
        std::vector<uint64_t> limits;
        for (const auto& row : sorted_) {
            const size_t last = std::min<size_t>(row.size(), k + 7);
            limits.push_back(last > 0 ? row[last - 1] : 0);
        }
        return DeviceBuffer<uint64_t>(limits);
    }

    SelectResult run(int k, int scratchByte) const {
        const SortCase& c = case_;
        const int64_t places = (c.firstRow + c.rows) * k;
        DeviceBuffer<uint8_t> outKeys(places * sizeOf(c.keyType), kOutputByte);
        DeviceBuffer<uint8_t> outIds(places * sizeOf(c.idType), kOutputByte);
        SurvivorOutput output;
        output.k = k;
        output.keyType = c.keyType;
        output.idType = c.idType;
        output.largest = c.largest;
        output.sorted = c.sorted;
        output.dropNan = c.dropNan;
        output.outKeys = outKeys.data();
        output.outIds = outIds.data();
        // Row firstRow of the keys and ids is the first of the test's rows.
        const int64_t before = c.firstRow * c.cols;
        if (c.givenIds) {
            output.ids = deviceIds_.data() - before * sizeOf(c.idType);
            output.idStride = c.cols;
        }
        KeySource keys;
        keys.keys = deviceKeys_.data() - before * int64_t(sizeOf(c.keyType));
        keys.rowStride = c.cols;
        keys.colBias = c.bias ? deviceBias_.data() : nullptr;
        SurvivorList list;
        list.rows = c.rows;
        list.capacity = capacity_;
        list.entries = entries_.data();
        list.counts = counts_.data();
        const DeviceBuffer<uint64_t> limits = limitsFor(k);
        list.limits = c.limits ? limits.data() : nullptr;
        list.columns = c.tellCols ? c.cols : kMaxSurvivors;
        list.firstRow = c.firstRow;
        list.bucket = c.bucket;
        const size_t bytes = c.bySort
                ? survivorSortWorkspaceBytes(c.rows, capacity_, c.bucket)
                : survivorWorkspaceBytes(list, k);
        const DeviceBuffer<uint8_t> scratch(bytes, scratchByte);
        const auto run = c.bySort ? runSurvivorSort : runSurvivors;
        run(list,
            output,
            c.hasKeys ? &keys : nullptr,
            {scratch.data(), scratch.size()},
            nullptr);
        return {outKeys.download(), outIds.download()};
    }

    void check(int k, const SelectResult& result) const {
        const SortCase& c = case_;
        auto keys = unpackFrom(c.keyType, result.keyBytes);
        auto ids = unpackIds(c.idType, result.idBytes);
        const float worst = maxOf(c.keyType);
        const float sentinel = c.largest ? -worst : worst;
        const int64_t skipped = c.firstRow * k * sizeOf(c.keyType);
        ASSERT_TRUE(std::all_of(
                result.keyBytes.begin(),
                result.keyBytes.begin() + skipped,
                [](uint8_t byte) { return byte == kOutputByte; }))
                << "a row before the first was written";
        for (int64_t r = 0; r < c.rows; ++r) {
            float* rowKeys = keys.data() + (c.firstRow + r) * k;
            int64_t* rowIds = ids.data() + (c.firstRow + r) * k;
            if (!c.sorted && !c.dropNan) {
                sortResult(rowKeys, rowIds, k, c.largest);
            }
            const auto& expected = expected_[r];
            for (int64_t i = 0; i < k; ++i) {
                const bool filled = i < int64_t(expected.size());
                const int64_t at =
                        filled ? r * c.cols + expected[i].id : int64_t(-1);
                const int64_t id = !filled ? -1
                        : c.givenIds       ? ids_[at]
                                           : expected[i].id;
                float key = filled ? compared_[at] : sentinel;
                key = !c.hasKeys && key == 0 ? 0.f : key; // +0
                ASSERT_EQ(rowIds[i], id) << "row " << r << ", place " << i;
                ASSERT_TRUE(
                        sameBits(rowKeys[i], key) ||
                        (c.bias && key == 0 && rowKeys[i] == 0))
                        << "row " << r << ", place " << i << ": " << rowKeys[i]
                        << " for " << key;
            }
        }
    }

    SortCase case_;
    int64_t capacity_ = 0;
    std::vector<float> keys_;     // [rows, cols]
    std::vector<float> compared_; // with bias
    std::vector<float> colBias_;
    std::vector<std::vector<Ranked>> expected_;
    std::vector<std::vector<uint64_t>> sorted_; // entries
    std::vector<int64_t> ids_;                  // [rows, cols]
    DeviceBuffer<uint8_t> deviceIds_;
    DeviceBuffer<uint64_t> entries_;
    DeviceBuffer<uint32_t> counts_;
    DeviceBuffer<uint8_t> deviceKeys_;
    DeviceBuffer<float> deviceBias_;
};

} // namespace faiss_bits::test
