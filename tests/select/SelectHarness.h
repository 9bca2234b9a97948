#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"
#include "tests/select/CaseShape.h"

/// Runs runSelect on host data in every way that its contract allows, and
/// holds the result against the oracle.
namespace faiss_bits::test {

/// runSelect as a way to select; tests of what lies below it have their own.
struct RunSelect {
    static size_t workspaceBytes(const SelectProblem& problem) {
        return selectWorkspaceBytes(problem);
    }
    static void run(
            const SelectProblem& problem,
            Workspace workspace,
            cudaStream_t stream) {
        runSelect(problem, workspace, stream);
    }
};

/// The data of one case on host and device, its oracle, and what was right
/// already.
class SelectData {
   public:
    explicit SelectData(const SelectCase& c)
            : case_(c), rowStride_(c.cols + c.padding) {
        std::mt19937 random(c.seed);
        // What lies between and around the rows would win if it were read.
        const bool largestKey = c.largest && !c.negated;
        const float bait = largestKey ? maxOf(c.keyType) : -maxOf(c.keyType);
        const int baitByte = largestKey ? 0x7B : 0xFB;
        keys_.assign(c.rows * rowStride_, bait);
        for (int64_t r = 0; r < c.rows; ++r) {
            const auto row = makeRow(c.values, c.cols, c.keyType, random);
            std::copy(row.begin(), row.end(), keys_.begin() + r * rowStride_);
        }
        roundAllTo(c.keyType, keys_);
        deviceKeys_ = DeviceBuffer<uint8_t>(
                packAs(c.keyType, keys_),
                baitByte,
                c.shift * sizeOf(c.keyType));
        if (c.givenIds) {
            idStride_ = rowStride_ + c.idPadding;
            for (int64_t r = 0; r < (c.sharedIds ? 1 : c.rows); ++r) {
                auto row =
                        makeIds(idStride_, c.idType == IdType::Int32, random);
                ids_.insert(ids_.end(), row.begin(), row.end());
            }
            deviceIds_ = DeviceBuffer<uint8_t>(
                    packIds(c.idType, ids_), 0, c.shift * sizeOf(c.idType));
            idStride_ = c.sharedIds ? 0 : idStride_;
        }
        if (c.bias) {
            // Two numbers with few bits: sums tie, and some go below zero.
            auto draw = [&] { return float(int(random() % 64) - 24) / 16.f; };
            for (int64_t i = 0; i < c.cols; ++i) {
                colBias_.push_back(draw());
            }
            for (int64_t i = 0; i < c.rows; ++i) {
                rowBias_.push_back(c.rowBias ? draw() : 0.f);
            }
            deviceColBias_ = DeviceBuffer<float>(colBias_, 0xFF, c.shift);
            deviceRowBias_ = DeviceBuffer<float>(rowBias_, 0xFF, c.shift);
            compared_.assign(keys_.begin(), keys_.end());
            for (int64_t r = 0; r < c.rows; ++r) {
                for (int64_t i = 0; i < c.cols; ++i) {
                    float& key = compared_[r * rowStride_ + i];
                    key = (key + colBias_[i]) + rowBias_[r];
                    key = c.clampAtZero && key < 0 ? 0.f : key;
                    key = c.negated ? -key : key;
                }
            }
        } else {
            compared_ = keys_;
        }
    }

    /// For what shapes a run and not the data: multiprocessors, algorithm,
    /// sorted.
    SelectCase& options() {
        return case_;
    }

    SelectProblem problem(int k) const {
        SelectProblem p = shapeOf(case_, k);
        p.largest = case_.largest && !case_.negated;
        p.negated = case_.negated;
        p.sharedIds = case_.sharedIds;
        p.sorted = case_.sorted;
        p.dropNan = case_.dropNan;
        p.keys = deviceKeys_.data();
        p.rowStride = case_.padding ? rowStride_ : 0;
        p.ids = case_.givenIds ? deviceIds_.data() : nullptr;
        p.idStride = case_.idPadding ? idStride_ : 0;
        p.idOffset = case_.idOffset;
        p.idType = case_.idType;
        p.colBias = case_.bias ? deviceColBias_.data() : nullptr;
        p.rowBias =
                case_.bias && case_.rowBias ? deviceRowBias_.data() : nullptr;
        p.clampAtZero = case_.clampAtZero;
        p.outStride = case_.outPadding ? k + case_.outPadding : 0;
        return p;
    }

    /// Selects into guarded outputs with exactly the scratch that the size
    /// query asks for, filled with `scratchByte`, and waits.
    template <class Method = RunSelect>
    SelectResult run(
            int k,
            cudaStream_t stream,
            int scratchByte,
            const Method& method = {}) {
        SelectProblem p = problem(k);
        const int64_t places = p.rows * (k + case_.outPadding);
        fit(outKeys_, places * sizeOf(p.keyType), kOutputByte, p.keyType);
        fit(outIds_, places * sizeOf(p.idType), kOutputByte, p.idType);
        p.outKeys = outKeys_.data();
        p.outIds = outIds_.data();
        if (isSmallTest()) {
            scratch_ = {};
        }
        scratch_.reset(method.workspaceBytes(p), scratchByte);
        method.run(p, {scratch_.data(), scratch_.size()}, stream);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        outKeys_.expectGuardsIntact();
        outIds_.expectGuardsIntact();
        scratch_.expectGuardsIntact();
        return {outKeys_.download(), outIds_.download()};
    }

    /// Oracle of every row, at least k long where the row is.
    void rank(int k) {
        if (k <= rankedK_) {
            return;
        }
        rankedK_ = k;
        ranked_.clear();
        for (int64_t r = 0; r < case_.rows; ++r) {
            ranked_.push_back(topKOfRow(
                    compared_.data() + r * rowStride_,
                    case_.cols,
                    case_.givenIds ? ids_.data() + r * idStride_ : nullptr,
                    case_.idOffset,
                    k,
                    case_.largest,
                    case_.dropNan));
        }
    }

    /// `result` against the last rank(). One failing row is enough. The
    /// contract leaves no freedom: what has the bits of a result that was right
    /// is right.
    ::testing::AssertionResult check(int k, const SelectResult& result) {
        SelectResult ordered = result;
        const bool comparable = inOrder() || putInOrder(k, ordered);
        const auto known = right_.find(k);
        if (comparable && known != right_.end() && known->second == ordered) {
            return ::testing::AssertionSuccess();
        }
        auto right = checkAll(k, result);
        if (right && comparable) {
            right_[k] = std::move(ordered);
        }
        return right;
    }

   private:
    /// Whether the contract says so.
    bool inOrder() const {
        return case_.sorted || case_.dropNan;
    }

    template <class Type>
    void fit(DeviceBuffer<uint8_t>& buffer, size_t bytes, int fill, Type type) {
        // Under compute-sanitizer, memory ends where it should.
        if (buffer.data() && !isSmallTest()) {
            buffer.reset(bytes, fill);
        } else {
            buffer = DeviceBuffer<uint8_t>(
                    bytes, fill, case_.shift * sizeOf(type));
        }
    }

    ::testing::AssertionResult checkAll(int k, const SelectResult& result)
            const {
        auto keys = unpackFrom(case_.keyType, result.keyBytes);
        auto ids = unpackIds(case_.idType, result.idBytes);
        const float worst = maxOf(case_.keyType);
        const int64_t outStride = k + case_.outPadding;
        for (int64_t r = 0; r < case_.rows; ++r) {
            const RowOfKeys row{
                    compared_.data() + r * rowStride_,
                    case_.cols,
                    case_.givenIds ? ids_.data() + r * idStride_ : nullptr,
                    case_.idOffset};
            float* rowKeys = keys.data() + r * outStride;
            int64_t* rowIds = ids.data() + r * outStride;
            if (!inOrder()) {
                sortResult(rowKeys, rowIds, k, case_.largest, row);
            }
            auto same = isTopKOfRow(
                    row,
                    ranked_[r],
                    rowKeys,
                    rowIds,
                    k,
                    case_.largest ? -worst : worst,
                    !case_.bias);
            if (same) {
                same = isUntouched(result, r * outStride + k, case_.outPadding);
            }
            if (!same) {
                return same << "\n  row " << r << ", k=" << k << ", "
                            << case_.describe();
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// Moves the places of an unsorted result to where a sorted one has them;
    /// false if it cannot be right, or if ids are given.
    bool putInOrder(int k, SelectResult& result) {
        if (case_.givenIds) {
            return false;
        }
        findPlaces();
        const SelectResult from = result;
        const auto ids = unpackIds(case_.idType, from.idBytes);
        std::vector<bool> taken;
        for (int64_t r = 0; r < case_.rows; ++r) {
            const int64_t filled = std::min<int64_t>(k, ranked_[r].size());
            const int64_t first = r * (k + case_.outPadding);
            taken.assign(k, false);
            int64_t rest = filled; // the next place of an id -1
            for (int64_t i = first; i < first + k; ++i) {
                const int64_t column = ids[i] - case_.idOffset;
                const bool exists = column >= 0 && column < case_.cols;
                const int64_t place =
                        exists ? places_[r * case_.cols + column] : rest++;
                if (place < 0 || place >= k || taken[place]) {
                    return false;
                }
                taken[place] = true;
                movePlace(
                        from.keyBytes,
                        i,
                        result.keyBytes,
                        first + place,
                        sizeOf(case_.keyType));
                movePlace(
                        from.idBytes,
                        i,
                        result.idBytes,
                        first + place,
                        sizeOf(case_.idType));
            }
        }
        return true;
    }

    static void movePlace(
            const std::vector<uint8_t>& from,
            int64_t i,
            std::vector<uint8_t>& to,
            int64_t place,
            size_t size) {
        std::memcpy(to.data() + place * size, from.data() + i * size, size);
    }

    /// The rank of every column, -1 behind the last one ranked.
    void findPlaces() {
        if (placedK_ == rankedK_) {
            return;
        }
        placedK_ = rankedK_;
        places_.assign(case_.rows * case_.cols, -1);
        for (int64_t r = 0; r < case_.rows; ++r) {
            for (size_t i = 0; i < ranked_[r].size(); ++i) {
                const int64_t column = ranked_[r][i].id - case_.idOffset;
                places_[r * case_.cols + column] = int32_t(i);
            }
        }
    }

    /// Nothing is written between the rows of the result.
    ::testing::AssertionResult isUntouched(
            const SelectResult& result,
            int64_t first,
            int64_t count) const {
        auto same = [&](const std::vector<uint8_t>& bytes, size_t size) {
            return std::all_of(
                    bytes.begin() + first * size,
                    bytes.begin() + (first + count) * size,
                    [](uint8_t byte) { return byte == kOutputByte; });
        };
        if (same(result.keyBytes, sizeOf(case_.keyType)) &&
            same(result.idBytes, sizeOf(case_.idType))) {
            return ::testing::AssertionSuccess();
        }
        return ::testing::AssertionFailure()
                << "the padding behind a row of the result was written";
    }

    SelectCase case_;
    int64_t rowStride_;
    int64_t idStride_ = 0;
    std::vector<float> keys_;     // [rows, rowStride]
    std::vector<float> compared_; // keys_ with biases and clamp
    std::vector<int64_t> ids_;    // [rows, idStride]
    std::vector<float> colBias_;
    std::vector<float> rowBias_;
    DeviceBuffer<uint8_t> deviceKeys_;
    DeviceBuffer<uint8_t> deviceIds_;
    DeviceBuffer<float> deviceColBias_;
    DeviceBuffer<float> deviceRowBias_;
    std::vector<std::vector<Ranked>> ranked_;
    int rankedK_ = 0;
    std::vector<int32_t> places_; // [rows, cols], of columns in ranked_
    int placedK_ = 0;
    std::map<int, SelectResult> right_; // by k, best first
    DeviceBuffer<uint8_t> outKeys_;
    DeviceBuffer<uint8_t> outIds_;
    DeviceBuffer<uint8_t> scratch_;
};

/// Every k of `ks` on one case, each twice on scratch that is dirty in two
/// ways: right by the oracle, and the same bits both times. In a small test
/// once, as compute-sanitizer needs no second look.
inline void expectSelects(
        SelectData& data,
        const std::vector<int>& ks,
        cudaStream_t stream = nullptr) {
    SCOPED_TRACE(data.options().describe());
    data.rank(*std::max_element(ks.begin(), ks.end()));
    for (int k : ks) {
        const SelectResult first = data.run(k, stream, 0xFF);
        ASSERT_TRUE(data.check(k, first));
        if (isSmallTest()) {
            continue;
        }
        const SelectResult second = data.run(k, stream, 0x00);
        if (data.options().sorted) {
            ASSERT_TRUE(first == second) << "two runs differ, k=" << k;
        } else {
            ASSERT_TRUE(data.check(k, second));
        }
    }
}

inline void expectSelects(
        const SelectCase& c,
        const std::vector<int>& ks,
        cudaStream_t stream = nullptr) {
    SelectData data(c);
    expectSelects(data, ks, stream);
}

/// The cross-section of kSelectKs that most tests use; the whole list runs on
/// a few shapes.
inline const std::vector<int> kFewKs = {1, 10, 32, 33, 128, 257, 1024, 2048};

} // namespace faiss_bits::test
