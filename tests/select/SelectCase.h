#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/select/Select.h"
#include "tests/common/Cases.h"

/// One selection that tests make, and what comes out of it.
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
    bool rowBias = true;     ///< with bias: also one number a row
    bool clampAtZero = true; ///< with bias
    bool negated = false;    ///< with bias, unclamped, and largest
    bool sharedIds = false;  ///< of givenIds
    bool sorted = true;
    bool dropNan = false;
    SelectAlgorithm algorithm = SelectAlgorithm::Auto;
    int64_t idOffset = 0;
    int64_t padding = 0;     ///< rowStride - cols
    int64_t idPadding = 0;   ///< idStride - rowStride, of given ids
    int64_t outPadding = 0;  ///< outStride - k
    size_t shift = 0;        ///< elements that the base pointers are off
    int multiprocessors = 0; ///< 0: of the device
    size_t sharedBytes = 0;  ///< of a block; 0: of the device
    bool clusters = true;    ///< false: as of a device that has none
    uint32_t seed = 1;

    std::string describe() const {
        std::ostringstream text;
        text << rows << " x " << cols << " " << nameOf(values) << " "
             << nameOf(keyType) << (largest ? " largest" : " smallest")
             << (idType == IdType::Int32 ? " ids32" : " ids64")
             << (givenIds ? " given" : " implicit")
             << (!bias             ? ""
                         : rowBias ? " bias"
                                   : " colBias")
             << (clampAtZero ? "" : " unclamped") << (negated ? " negated" : "")
             << (sharedIds ? " shared" : "") << (sorted ? "" : " unsorted")
             << (dropNan ? " dropNan" : "") << " " << nameOf(algorithm)
             << " idOffset=" << idOffset << " padding=" << padding
             << " idPadding=" << idPadding << " outPadding=" << outPadding
             << " shift=" << shift << " multiprocessors=" << multiprocessors
             << " sharedBytes=" << sharedBytes
             << (clusters ? "" : " noClusters") << " seed=" << seed;
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

} // namespace faiss_bits::test
