#pragma once

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "tests/common/Cases.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"

/// Runs runSelect on host data in every way that its contract allows, and
/// holds the result against the oracle.
namespace faiss_bits::test {

struct SelectCase {
    int64_t rows = 1;
    int64_t cols = 1;
    Values values = Values::Random;
    DataType keyType = DataType::Float32;
    bool largest = false;
    IdType idType = IdType::Int64;
    bool givenIds = false;
    bool bias = false;
    int64_t idOffset = 0;
    int64_t padding = 0;     ///< rowStride - cols
    int64_t outPadding = 0;  ///< outStride - k
    size_t shift = 0;        ///< elements that the base pointers are off
    int multiprocessors = 0; ///< 0: of the device
    uint32_t seed = 1;

    std::string describe() const {
        std::ostringstream text;
        text << rows << " x " << cols << " " << nameOf(values) << " "
             << nameOf(keyType) << (largest ? " largest" : " smallest")
             << (idType == IdType::Int32 ? " ids32" : " ids64")
             << (givenIds ? " given" : " implicit") << (bias ? " bias" : "")
             << " idOffset=" << idOffset << " padding=" << padding
             << " outPadding=" << outPadding << " shift=" << shift
             << " multiprocessors=" << multiprocessors << " seed=" << seed;
        return text.str();
    }
};

/// What outputs are filled with: neither a sentinel key nor the id -1.
constexpr int kOutputByte = 0xA5;

struct SelectResult {
    std::vector<uint8_t> keyBytes;
    std::vector<uint8_t> idBytes;

    bool operator==(const SelectResult&) const = default;
};

/// The data of one case on host and device, and its oracle.
class SelectData {
   public:
    explicit SelectData(const SelectCase& c)
            : case_(c), rowStride_(c.cols + c.padding) {
        std::mt19937 random(c.seed);
        // What lies between and around the rows would win if it were read.
        const float bait = c.largest ? maxOf(c.keyType) : -maxOf(c.keyType);
        const int baitByte = c.largest ? 0x7B : 0xFB;
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
            for (int64_t r = 0; r < c.rows; ++r) {
                auto row =
                        makeIds(rowStride_, c.idType == IdType::Int32, random);
                ids_.insert(ids_.end(), row.begin(), row.end());
            }
            deviceIds_ = DeviceBuffer<uint8_t>(
                    packIds(c.idType, ids_), 0, c.shift * sizeOf(c.idType));
        }
        if (c.bias) {
            // Two numbers with few bits: sums tie, and some go below zero.
            auto draw = [&] { return float(int(random() % 64) - 24) / 16.f; };
            for (int64_t i = 0; i < c.cols; ++i) {
                colBias_.push_back(draw());
            }
            for (int64_t i = 0; i < c.rows; ++i) {
                rowBias_.push_back(draw());
            }
            deviceColBias_ = DeviceBuffer<float>(colBias_, 0xFF, c.shift);
            deviceRowBias_ = DeviceBuffer<float>(rowBias_, 0xFF, c.shift);
            compared_.assign(keys_.begin(), keys_.end());
            for (int64_t r = 0; r < c.rows; ++r) {
                for (int64_t i = 0; i < c.cols; ++i) {
                    float& key = compared_[r * rowStride_ + i];
                    key = (key + colBias_[i]) + rowBias_[r];
                    key = key < 0 ? 0.f : key;
                }
            }
        } else {
            compared_ = keys_;
        }
    }

    /// For what shapes a run and not the data: multiprocessors.
    SelectCase& options() {
        return case_;
    }

    SelectProblem problem(int k) const {
        SelectProblem p;
        p.rows = case_.rows;
        p.cols = case_.cols;
        p.k = k;
        p.keyType = case_.keyType;
        p.largest = case_.largest;
        p.keys = deviceKeys_.data();
        p.rowStride = case_.padding ? rowStride_ : 0;
        p.ids = case_.givenIds ? deviceIds_.data() : nullptr;
        p.idOffset = case_.idOffset;
        p.idType = case_.idType;
        p.colBias = case_.bias ? deviceColBias_.data() : nullptr;
        p.rowBias = case_.bias ? deviceRowBias_.data() : nullptr;
        p.outStride = case_.outPadding ? k + case_.outPadding : 0;
        p.multiprocessors = case_.multiprocessors ? case_.multiprocessors
                                                  : multiprocessorCount();
        return p;
    }

    /// Selects into fresh guarded outputs with exactly the scratch that the
    /// size query asks for, filled with `scratchByte`, and waits.
    SelectResult run(int k, cudaStream_t stream, int scratchByte) const {
        SelectProblem p = problem(k);
        const int64_t outElements = p.rows * (k + case_.outPadding);
        DeviceBuffer<uint8_t> outKeys(
                outElements * sizeOf(p.keyType),
                kOutputByte,
                case_.shift * sizeOf(p.keyType));
        DeviceBuffer<uint8_t> outIds(
                outElements * sizeOf(p.idType),
                kOutputByte,
                case_.shift * sizeOf(p.idType));
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        DeviceBuffer<uint8_t> scratch(selectWorkspaceBytes(p), scratchByte);
        runSelect(p, {scratch.data(), scratch.size()}, stream);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        return {outKeys.download(), outIds.download()};
    }

    /// Oracle of every row, at least k long where the row is.
    void rank(int k) {
        ranked_.clear();
        for (int64_t r = 0; r < case_.rows; ++r) {
            ranked_.push_back(topKOfRow(
                    compared_.data() + r * rowStride_,
                    case_.cols,
                    case_.givenIds ? ids_.data() + r * rowStride_ : nullptr,
                    case_.idOffset,
                    k,
                    case_.largest));
        }
    }

    /// `result` against the last rank(). One failing row is enough.
    ::testing::AssertionResult check(int k, const SelectResult& result) const {
        const auto keys = unpackFrom(case_.keyType, result.keyBytes);
        const auto ids = unpackIds(case_.idType, result.idBytes);
        const float worst = maxOf(case_.keyType);
        const int64_t outStride = k + case_.outPadding;
        for (int64_t r = 0; r < case_.rows; ++r) {
            const RowOfKeys row{
                    compared_.data() + r * rowStride_,
                    case_.cols,
                    case_.givenIds ? ids_.data() + r * rowStride_ : nullptr,
                    case_.idOffset};
            auto same = isTopKOfRow(
                    row,
                    ranked_[r],
                    keys.data() + r * outStride,
                    ids.data() + r * outStride,
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

   private:
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
    std::vector<float> keys_;     // [rows, rowStride]
    std::vector<float> compared_; // keys_ with biases and clamp
    std::vector<int64_t> ids_;    // [rows, rowStride]
    std::vector<float> colBias_;
    std::vector<float> rowBias_;
    DeviceBuffer<uint8_t> deviceKeys_;
    DeviceBuffer<uint8_t> deviceIds_;
    DeviceBuffer<float> deviceColBias_;
    DeviceBuffer<float> deviceRowBias_;
    std::vector<std::vector<Ranked>> ranked_;
};

/// Every k of `ks` on one case, each twice on scratch that is dirty in two
/// ways: right by the oracle, and the same bits both times.
inline void expectSelects(
        const SelectCase& c,
        const std::vector<int>& ks,
        cudaStream_t stream = nullptr) {
    SCOPED_TRACE(c.describe());
    SelectData data(c);
    data.rank(*std::max_element(ks.begin(), ks.end()));
    for (int k : ks) {
        const SelectResult first = data.run(k, stream, 0xFF);
        ASSERT_TRUE(data.check(k, first));
        ASSERT_TRUE(first == data.run(k, stream, 0x00))
                << "two runs differ, k=" << k;
    }
}

/// The cross-section of kSelectKs that most tests use; the whole list runs on
/// a few shapes.
inline const std::vector<int> kFewKs = {1, 10, 32, 33, 128, 257, 1024, 2048};

} // namespace faiss_bits::test
