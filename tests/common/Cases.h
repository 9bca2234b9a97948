#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/common/Types.h"
#include "tests/common/MetricNames.h"

/// Case lists shared by the tests, and the values to fill them with.
namespace faiss_bits::test {

/// Both sides of every power of two at which a kernel may change its path.
inline const std::vector<int> kSelectKs = {
        1,   2,   3,   31,  32,  33,  63,   64,   65,   127,  128, 129,
        255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2047, 2048};

/// Both sides of the sizes at which a row may be tiled, or split over blocks.
inline const std::vector<int64_t> kSelectCols =
        {1, 2, 31, 32, 33, 1023, 1024, 1025, 4095, 4096, 4097, 65537};

/// Both sides of what a vector load, a warp or a GEMM tile takes of d.
inline const std::vector<int> kDims = {
        1,  2,  3,  4,   5,   7,   8,   15,  16,  17,  31,  32,  33,
        63, 64, 65, 100, 127, 128, 129, 130, 256, 300, 768, 1000};

enum class Values {
    Random,     ///< uniform in [-1, 1)
    Ascending,  ///< sorted, with ties where the type runs out of values
    Descending, ///< sorted the other way
    AllEqual,
    FewDistinct,  ///< 16 values
    HalfInfinite, ///< every second one +inf, by a coin
    SomeNan,      ///< one in ten NaN, of either sign
    AllNan,
    SignedZeros,     ///< -0 and +0, and one in eight a number
    Denormals,       ///< multiples of the smallest denormal of the type
    SameLeadingBits, ///< 1 plus a few units of the last place
    BothInfinities,  ///< -inf, +inf and numbers
    OneFinite,       ///< all NaN save the last one
    BestTogether,    ///< all 0 save a run near the end: below 0, then above it
    BestInRuns       ///< the keys of 32 columns in a row are nearly the same
};

inline const std::vector<Values> kAllValues = {
        Values::Random,
        Values::Ascending,
        Values::Descending,
        Values::AllEqual,
        Values::FewDistinct,
        Values::HalfInfinite,
        Values::SomeNan,
        Values::AllNan,
        Values::SignedZeros,
        Values::Denormals,
        Values::SameLeadingBits,
        Values::BothInfinities,
        Values::OneFinite,
        Values::BestTogether,
        Values::BestInRuns};

inline std::string nameOf(Values values) {
    switch (values) {
        case Values::Random:
            return "Random";
        case Values::Ascending:
            return "Ascending";
        case Values::Descending:
            return "Descending";
        case Values::AllEqual:
            return "AllEqual";
        case Values::FewDistinct:
            return "FewDistinct";
        case Values::HalfInfinite:
            return "HalfInfinite";
        case Values::SomeNan:
            return "SomeNan";
        case Values::AllNan:
            return "AllNan";
        case Values::SignedZeros:
            return "SignedZeros";
        case Values::Denormals:
            return "Denormals";
        case Values::SameLeadingBits:
            return "SameLeadingBits";
        case Values::BothInfinities:
            return "BothInfinities";
        case Values::OneFinite:
            return "OneFinite";
        case Values::BestTogether:
            return "BestTogether";
        case Values::BestInRuns:
            return "BestInRuns";
    }
    return "?";
}

inline std::string nameOf(DataType type) {
    switch (type) {
        case DataType::Float32:
            return "float32";
        case DataType::Float16:
            return "float16";
        case DataType::BFloat16:
            return "bfloat16";
    }
    return "?";
}

inline void PrintTo(Values values, std::ostream* out) {
    *out << nameOf(values);
}

/// One row of keys. A test of a 16-bit type still has to round the values to
/// it; where a pattern depends on the type (denormals, last places) the values
/// are exact in it.
inline std::vector<float> makeRow(
        Values values,
        int64_t cols,
        DataType type,
        std::mt19937& random) {
    // Bits behind the point, and the exponent of the smallest denormal.
    const int digits = type == DataType::Float32 ? 23
            : type == DataType::Float16          ? 10
                                                 : 7;
    const int least = type == DataType::Float16 ? -24 : -126 - digits;
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    // Consecutive integers that the type can hold.
    const int64_t exact = int64_t(2) << digits;
    const double step = cols <= exact ? 1.0 : double(exact) / double(cols);
    auto uniform = [&] {
        return std::uniform_real_distribution<float>(-1.f, 1.f)(random);
    };
    auto below = [&](uint32_t bound) { return uint32_t(random() % bound); };

    std::vector<float> row(cols);
    float ofRun = 0;
    for (int64_t c = 0; c < cols; ++c) {
        float& key = row[c];
        switch (values) {
            case Values::Random:
                key = uniform();
                break;
            case Values::Ascending:
                key = float(std::floor(double(c) * step));
                break;
            case Values::Descending:
                key = float(std::floor(double(cols - c) * step));
                break;
            case Values::AllEqual:
                key = 0.5f;
                break;
            case Values::FewDistinct:
                key = float(below(16)) - 8.f;
                break;
            case Values::HalfInfinite:
                key = below(2) ? inf : uniform();
                break;
            case Values::SomeNan:
                key = below(10) ? uniform() : below(2) ? nan : -nan;
                break;
            case Values::AllNan:
                key = nan;
                break;
            case Values::SignedZeros:
                key = below(8) == 0 ? uniform() : (below(2) ? -0.f : 0.f);
                break;
            case Values::Denormals:
                // Some of the 7-bit type's are normal numbers.
                key = std::ldexp(float(int(below(512)) - 256), least);
                break;
            case Values::SameLeadingBits:
                key = 1.f +
                        std::ldexp(
                                float(below(1u << std::min(digits, 12))),
                                -digits);
                break;
            case Values::BothInfinities: {
                const uint32_t pick = below(4);
                key = pick == 0 ? inf : pick == 1 ? -inf : uniform();
                break;
            }
            case Values::OneFinite:
                key = c + 1 == cols ? 1.f : nan;
                break;
            case Values::BestTogether: {
                const int64_t length = std::min<int64_t>(cols / 4, 3000);
                const int64_t place = c - (cols - cols / 8 - length);
                key = place < 0 || place >= length ? 0.f
                        : place < length / 2       ? float(-1 - place)
                                                   : float(length - place);
                break;
            }
            case Values::BestInRuns:
                if (c % 32 == 0) {
                    ofRun = uniform();
                }
                key = ofRun + std::ldexp(uniform(), -14);
                break;
        }
    }
    return row;
}

/// Distinct ids in no order, some of them beyond 2^32 unless `narrow`.
inline std::vector<int64_t> makeIds(
        int64_t count,
        bool narrow,
        std::mt19937& random) {
    std::vector<int64_t> ids(count);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t wide = narrow ? 0 : int64_t(random() % 8) << 33;
        ids[i] = 3 * i + 1 + wide;
    }
    std::shuffle(ids.begin(), ids.end(), random);
    return ids;
}

} // namespace faiss_bits::test

namespace faiss_bits {

// GoogleTest's names of parameters.

inline void PrintTo(DataType type, std::ostream* out) {
    *out << test::nameOf(type);
}

} // namespace faiss_bits
