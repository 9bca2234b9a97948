#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/knn/FlatKnn.h"
#include "tests/common/Cases.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"

/// Shapes and data of the searches that the tests make.
namespace faiss_bits::test {

constexpr size_t kLeastScratch = 0;
constexpr size_t kRoomyScratch = size_t(1) << 32;

enum class Vectors {
    Uniform,  ///< components in [-1, 1): answers within the rounding
    Integers, ///< every distance is exact in fp32, but not in TF32: bit for bit
    Equal,    ///< all the same vector, exact
    FewNumbers, ///< 16 distinct vectors, exact, and 19 of 20 have a NaN
    Special     ///< uniform, with NaN and infinite components in some vectors
};

inline const char* nameOf(Vectors data) {
    switch (data) {
        case Vectors::Uniform:
            return "uniform";
        case Vectors::Integers:
            return "integers";
        case Vectors::Equal:
            return "equal";
        case Vectors::FewNumbers:
            return "few numbers";
        case Vectors::Special:
            return "special";
    }
    return "?";
}

struct KnnCase {
    Metric metric = Metric::L2;
    DataType dataType = DataType::Float32;
    int64_t n = 1000;
    int64_t q = 10;
    int d = 8;
    int k = 10;
    Vectors data = Vectors::Uniform;
    bool vectorsRowMajor = true;
    bool queriesRowMajor = true;
    bool giveNorms = false;
    IdType idType = IdType::Int64;
    SearchMode mode = SearchMode::Certified;
    size_t maxScratch = kRoomyScratch;
    size_t shift = 0;        ///< elements that the base pointers are off
    int multiprocessors = 0; ///< 0: of the device
    uint32_t seed = 1;

    /// The problem without its arrays: enough to plan with.
    FlatKnnProblem shape() const {
        FlatKnnProblem p;
        p.metric = metric;
        p.dataType = dataType;
        p.numVectors = n;
        p.numQueries = q;
        p.d = d;
        p.k = k;
        p.vectorsRowMajor = vectorsRowMajor;
        p.queriesRowMajor = queriesRowMajor;
        p.idType = idType;
        p.mode = mode;
        p.device.singleToDouble = 32; // few pairs: TestDirect.cpp
        p.device.multiprocessors =
                multiprocessors ? multiprocessors : multiprocessorCount();
        return p;
    }

    std::string describe() const {
        std::ostringstream text;
        text << (metric == Metric::L2 ? "L2 " : "IP ") << nameOf(dataType)
             << " n=" << n << " q=" << q << " d=" << d << " k=" << k << " "
             << nameOf(data) << (vectorsRowMajor ? "" : " column-major vectors")
             << (queriesRowMajor ? "" : " column-major queries")
             << (giveNorms ? " norms given" : "")
             << (idType == IdType::Int32 ? " ids32" : "")
             << (mode == SearchMode::Plain ? " plain" : "")
             << " maxScratch=" << maxScratch << " shift=" << shift
             << " multiprocessors=" << multiprocessors << " seed=" << seed;
        return text.str();
    }
};

/// count vectors of d components, exact in `type`.
inline std::vector<float> makeVectors(
        const KnnCase& c,
        int64_t count,
        bool areQueries,
        std::mt19937& random) {
    // The first component needs every bit of float16 and bfloat16, and more
    // than TF32's eleven in float32; the squared norm stays below 2^24.
    const int first = c.dataType == DataType::Float32 ? 2049
            : c.dataType == DataType::Float16         ? 1024
                                                      : 128;
    const float odd[] = {
            std::numeric_limits<float>::quiet_NaN(),
            std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()};
    std::vector<float> values(count * c.d);
    std::uniform_real_distribution<float> uniform(-1.f, 1.f);
    for (int64_t i = 0; i < count; ++i) {
        float* vector = values.data() + i * c.d;
        for (int j = 0; j < c.d; ++j) {
            vector[j] = c.data == Vectors::Integers ? float(random() % 8)
                                                    : uniform(random);
        }
        if (c.data == Vectors::Integers) {
            vector[0] = areQueries ? float(random() % 4)
                                   : float(first + random() % (first / 5));
        }
        if (c.data == Vectors::Equal || c.data == Vectors::FewNumbers) {
            std::fill(vector, vector + c.d, 1.f);
        }
        if (c.data == Vectors::FewNumbers && !areQueries) {
            vector[0] = float(random() % 16);
            if (random() % 20 != 0) {
                vector[random() % c.d] = random() % 2 ? odd[0] : -odd[0];
            }
        }
        if (c.data == Vectors::Special && !areQueries && random() % 4 == 0) {
            vector[random() % c.d] = odd[random() % 3];
        }
    }
    roundAllTo(c.dataType, values);
    return values;
}

inline std::vector<float> transposed(
        const std::vector<float>& rows,
        int64_t count,
        int d) {
    std::vector<float> columns(rows.size());
    for (int64_t i = 0; i < count; ++i) {
        for (int j = 0; j < d; ++j) {
            columns[j * count + i] = rows[i * d + j];
        }
    }
    return columns;
}

} // namespace faiss_bits::test
