#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/dropin/FaissFunctions.h"
#include "tests/common/Cases.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"

/// Calls FAISS's functions, as the drop-in library defines them, on host data,
/// and holds the result against FAISS's contract.
namespace faiss_bits::test {

enum class Which { Block, Pair, L2 };

struct DropinCase {
    Which which = Which::Block;
    int64_t rows = 1;
    int64_t cols = 1;
    int k = 1;
    bool largest = false;
    Values values = Values::Random;
    int64_t padding = 0;      ///< of a row of keys
    int64_t idPadding = 0;    ///< of a row of given ids
    int64_t outPadding = 0;   ///< of a row of outKeys
    int64_t outIdPadding = 0; ///< of a row of outIds
    size_t shift = 0;         ///< elements that every base pointer is off
    bool inPlace = false;     ///< the outputs are the first k of the inputs
    uint32_t seed = 1;

    std::string describe() const {
        static const char* const names[] = {"Block", "Pair", "L2"};
        std::ostringstream text;
        text << names[int(which)] << " " << rows << " x " << cols << " k=" << k
             << (largest ? " largest " : " smallest ") << nameOf(values)
             << " padding=" << padding << "," << idPadding << "," << outPadding
             << "," << outIdPadding << " shift=" << shift
             << (inPlace ? " in place" : "") << " seed=" << seed;
        return text.str();
    }
};

template <class Element, class Index>
faiss::gpu::Matrix<Element, Index> matrixOf(
        void* data,
        int64_t rows,
        int64_t cols,
        int64_t stride) {
    // The last stride of such a tensor is never read.
    return {static_cast<Element*>(data),
            {Index(stride), Index(77)},
            {Index(rows), Index(cols)}};
}

/// One case on host and device. Index: int or int64_t.
template <class Index>
class DropinData {
   public:
    static constexpr DataType kKeyType = DataType::Float32;
    static constexpr IdType kIdType =
            sizeof(Index) == 4 ? IdType::Int32 : IdType::Int64;
    static constexpr int kOutputByte = 0xA5;

    explicit DropinData(const DropinCase& c) : case_(c) {
        std::mt19937 random(c.seed);
        const float bait = c.largest ? maxOf(kKeyType) : -maxOf(kKeyType);
        keys_.assign(c.rows * keyStride(), bait);
        for (int64_t r = 0; r < c.rows; ++r) {
            const auto row = makeRow(c.values, c.cols, kKeyType, random);
            std::copy(row.begin(), row.end(), keys_.begin() + r * keyStride());
        }
        roundAllTo(kKeyType, keys_);
        compared_ = keys_;
        if (c.which == Which::L2) {
            for (int64_t i = 0; i < c.cols; ++i) {
                bias_.push_back(float(int(random() % 64) - 24) / 16.f);
            }
            for (int64_t r = 0; r < c.rows; ++r) {
                for (int64_t i = 0; i < c.cols; ++i) {
                    compared_[r * keyStride() + i] += bias_[i];
                }
            }
        }
        if (c.which == Which::Pair) {
            for (int64_t r = 0; r < c.rows; ++r) {
                const auto row = makeIds(
                        c.cols + c.idPadding, sizeof(Index) == 4, random);
                ids_.insert(ids_.end(), row.begin(), row.end());
            }
        }
        deviceKeys_ = DeviceBuffer<uint8_t>(
                packAs(kKeyType, keys_), 0xFB, c.shift * sizeof(float));
        deviceIds_ = DeviceBuffer<uint8_t>(
                packIds(kIdType, ids_), 0x11, c.shift * sizeof(Index));
        deviceBias_ = DeviceBuffer<float>(bias_, 0xFF, c.shift);
        outKeys_ = DeviceBuffer<uint8_t>(
                c.inPlace ? 0 : c.rows * outKeyStride() * sizeof(float),
                kOutputByte,
                c.shift * sizeof(float));
        const bool ownIds = !c.inPlace || c.which != Which::Pair;
        outIds_ = DeviceBuffer<uint8_t>(
                ownIds ? c.rows * outIdStride() * sizeof(Index) : 0,
                kOutputByte,
                c.shift * sizeof(Index));
    }

    /// Calls the function; does not wait.
    void call(cudaStream_t stream) {
        const DropinCase& c = case_;
        auto in = matrixOf<float, Index>(
                deviceKeys_.data(), c.rows, c.cols, keyStride());
        auto ids = matrixOf<Index, Index>(
                deviceIds_.data(), c.rows, c.cols, c.cols + c.idPadding);
        auto outKeys = matrixOf<float, Index>(
                outKeyBuffer().data(), c.rows, c.k, outKeyStride());
        auto outIds = matrixOf<Index, Index>(
                outIdBuffer().data(), c.rows, c.k, outIdStride());
        switch (c.which) {
            case Which::Block:
                faiss::gpu::runBlockSelect(
                        in, outKeys, outIds, c.largest, c.k, stream);
                break;
            case Which::Pair:
                faiss::gpu::runBlockSelectPair(
                        in, ids, outKeys, outIds, c.largest, c.k, stream);
                break;
            case Which::L2: {
                faiss::gpu::Vector<float, Index> bias{
                        deviceBias_.data(), {Index(77)}, {Index(c.cols)}};
                faiss::gpu::runL2SelectMin(
                        in, bias, outKeys, outIds, c.k, stream);
                break;
            }
        }
    }

    /// Forgets the last result.
    void clearOutputs() {
        outKeys_.fillBytes(kOutputByte);
        outIds_.fillBytes(kOutputByte);
    }

    ::testing::AssertionResult check() {
        const auto keys = unpackFrom(kKeyType, outKeyBuffer().download());
        const auto ids = unpackIds(kIdType, outIdBuffer().download());
        for (int64_t r = 0; r < case_.rows; ++r) {
            auto result = checkRow(
                    r,
                    keys.data() + r * outKeyStride(),
                    ids.data() + r * outIdStride());
            if (!result) {
                return result << "\n  row " << r << " of " << case_.describe();
            }
        }
        return ::testing::AssertionSuccess();
    }

   private:
    int64_t keyStride() const {
        return case_.cols + case_.padding;
    }
    int64_t outKeyStride() const {
        return case_.inPlace ? keyStride() : case_.k + case_.outPadding;
    }
    int64_t outIdStride() const {
        return case_.inPlace && case_.which == Which::Pair
                ? case_.cols + case_.idPadding
                : case_.k + case_.outIdPadding;
    }
    DeviceBuffer<uint8_t>& outKeyBuffer() {
        return case_.inPlace ? deviceKeys_ : outKeys_;
    }
    DeviceBuffer<uint8_t>& outIdBuffer() {
        return case_.inPlace && case_.which == Which::Pair ? deviceIds_
                                                           : outIds_;
    }

    /// FAISS's contract: the candidates are the keys that are better than the
    /// worst finite number; the best of them come first, in order; the order
    /// of equal keys is open; what is left over is (worst, -1).
    ::testing::AssertionResult checkRow(
            int64_t r,
            const float* outKeys,
            const int64_t* outIds) const {
        const DropinCase& c = case_;
        const float* keys = compared_.data() + r * keyStride();
        const float worst = c.largest ? -maxOf(kKeyType) : maxOf(kKeyType);
        std::vector<float> expected;
        for (int64_t i = 0; i < c.cols; ++i) {
            if (c.largest ? keys[i] > worst : keys[i] < worst) {
                expected.push_back(keys[i]);
            }
        }
        std::sort(expected.begin(), expected.end());
        if (c.largest) {
            std::reverse(expected.begin(), expected.end());
        }
        std::vector<bool> seen(c.cols);
        for (int i = 0; i < c.k; ++i) {
            if (i >= int64_t(expected.size())) {
                if (outKeys[i] != worst || outIds[i] != -1) {
                    return fails(i, outKeys[i], outIds[i], worst);
                }
                continue;
            }
            const int64_t column = columnOf(r, outIds[i]);
            if (outKeys[i] != expected[i] || column < 0 ||
                keys[column] != outKeys[i]) {
                return fails(i, outKeys[i], outIds[i], expected[i]);
            }
            if (seen[column]) {
                return fails(i, outKeys[i], outIds[i], expected[i])
                        << ", and the column is there twice";
            }
            seen[column] = true;
        }
        return ::testing::AssertionSuccess();
    }

    int64_t columnOf(int64_t r, int64_t id) const {
        int64_t column = id;
        if (case_.which == Which::Pair) {
            const int64_t stride = case_.cols + case_.idPadding;
            const auto begin = ids_.begin() + r * stride;
            const auto end = begin + case_.cols;
            const auto found = std::find(begin, end, id);
            column = found == end ? -1 : found - begin;
        }
        return column < case_.cols ? column : -1;
    }

    static ::testing::AssertionResult fails(
            int place,
            float key,
            int64_t id,
            float expected) {
        return ::testing::AssertionFailure()
                << "place " << place << " is (" << key << ", " << id
                << "), expected key " << expected;
    }

    DropinCase case_;
    std::vector<float> keys_;     // [rows, keyStride]
    std::vector<float> compared_; // keys_ with the bias
    std::vector<float> bias_;     // [cols]
    std::vector<int64_t> ids_;    // [rows, cols + idPadding]
    DeviceBuffer<uint8_t> deviceKeys_;
    DeviceBuffer<uint8_t> deviceIds_;
    DeviceBuffer<float> deviceBias_;
    DeviceBuffer<uint8_t> outKeys_;
    DeviceBuffer<uint8_t> outIds_;
};

template <class Index>
void expectSelectsAs(const DropinCase& c, cudaStream_t stream = nullptr) {
    DropinData<Index> data(c);
    data.call(stream);
    ASSERT_TRUE(data.check());
}

/// The case through both symbols of its function.
inline void expectSelects(const DropinCase& c, cudaStream_t stream = nullptr) {
    expectSelectsAs<int>(c, stream);
    expectSelectsAs<int64_t>(c, stream);
}

inline const std::vector<Which> kAllFunctions = {
        Which::Block,
        Which::Pair,
        Which::L2};

} // namespace faiss_bits::test
