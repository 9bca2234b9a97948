/// Cases of the tests of tensor cores: rows of many kinds, and exact keys,
/// computed here in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/knn/fused/tensor/TensorScan.h"
#include "tests/common/HalfBits.h"

namespace faiss_bits::test {

enum class TensorValues {
    Uniform,
    Integers,
    Duplicates,
    Scattered, ///< magnitudes from 1e-6 to 1e6
    Infinities,
    NaNs,
    Denormals,
    Huge, ///< around 1e30
    Tiny, ///< around 1e-30
    Far,  ///< an offset of 10,000
};

constexpr TensorValues kAllTensorValues[] = {
        TensorValues::Uniform,
        TensorValues::Integers,
        TensorValues::Duplicates,
        TensorValues::Scattered,
        TensorValues::Infinities,
        TensorValues::NaNs,
        TensorValues::Denormals,
        TensorValues::Huge,
        TensorValues::Tiny,
        TensorValues::Far};

inline const char* nameOf(TensorValues values) {
    static const char* const kNames[] = {
            "uniform",
            "integers",
            "duplicates",
            "scattered",
            "infinities",
            "NaN",
            "denormals",
            "huge",
            "tiny",
            "far"};
    return kNames[int(values)];
}

struct TensorCase {
    Metric metric = Metric::L2;
    int64_t numQueries = 1;
    int64_t n = 1;
    int d = 1;
    TensorValues values = TensorValues::Uniform;
    TensorScanKernel kernel = TensorScanKernel::Auto;
    DataType type = DataType::Float32;
    uint32_t capacity = 0; ///< 0: enough for all
    bool filtered = false;
    bool manyPass = false;  ///< the scan is told so
    int64_t addedLater = 0; ///< vectors written into the image by another call
    unsigned seed = 1;

    std::string name() const {
        return "metric " + std::to_string(int(metric)) +
                " q=" + std::to_string(numQueries) + " n=" + std::to_string(n) +
                " d=" + std::to_string(d) + " " + nameOf(values) +
                " kernel=" + std::to_string(int(kernel)) +
                " type=" + std::to_string(int(type)) +
                " capacity=" + std::to_string(capacity) +
                (filtered ? " filtered" : "") + (manyPass ? " many pass" : "") +
                " later=" + std::to_string(addedLater) +
                " seed=" + std::to_string(seed);
    }
};

inline std::vector<float> tensorRows(
        const TensorCase& c,
        int64_t rows,
        std::mt19937& random) {
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
    std::uniform_real_distribution<float> around(-1.0f, 1.0f);
    std::vector<float> out(size_t(rows) * c.d);
    for (size_t i = 0; i < out.size(); ++i) {
        const size_t row = i / c.d;
        switch (c.values) {
            case TensorValues::Uniform:
                out[i] = uniform(random);
                break;
            case TensorValues::Integers:
                out[i] = float(random() % 256);
                break;
            case TensorValues::Duplicates:
                out[i] = row % 7 && i >= size_t(c.d) ? out[i - c.d]
                                                     : around(random);
                break;
            case TensorValues::Scattered:
                out[i] =
                        around(random) * std::pow(10.0f, 6.0f * around(random));
                break;
            case TensorValues::Infinities:
                out[i] = random() % (20 * c.d) == 0
                        ? (random() % 2 ? INFINITY : -INFINITY)
                        : around(random);
                break;
            case TensorValues::NaNs:
                out[i] = random() % (20 * c.d) == 0 ? NAN : around(random);
                break;
            case TensorValues::Denormals:
                out[i] = around(random) * 1e-39f;
                break;
            case TensorValues::Huge:
                out[i] = around(random) * 1e30f;
                break;
            case TensorValues::Tiny:
                out[i] = around(random) * 1e-30f;
                break;
            case TensorValues::Far:
                out[i] = 10000.0f + uniform(random);
                break;
        }
        if (c.type == DataType::Float16) {
            out[i] = float16Value(float16Bits(out[i]));
        } else if (c.type == DataType::BFloat16) {
            out[i] = bfloat16Value(bfloat16Bits(out[i]));
        }
    }
    return out;
}

inline std::vector<uint8_t> tensorBytes(
        DataType type,
        const std::vector<float>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeOf(type));
    for (size_t i = 0; i < values.size(); ++i) {
        const uint16_t half = type == DataType::Float16
                ? float16Bits(values[i])
                : bfloat16Bits(values[i]);
        std::memcpy(
                bytes.data() + i * sizeOf(type),
                type == DataType::Float32 ? static_cast<const void*>(&values[i])
                                          : &half,
                sizeOf(type));
    }
    return bytes;
}

/// Rows, what the images want to know of them, and exact norms.
struct TensorRows {
    std::vector<float> values;
    std::vector<float> norms;        // squared, float32
    std::vector<float> inverseNorms; // -1: not fit
    std::vector<double> lengths;
    float greatest = 0;

    TensorRows(std::vector<float> rows, int d) : values(std::move(rows)) {
        for (size_t i = 0; i < values.size() / d; ++i) {
            float norm = 0;
            double sum = 0;
            for (int c = 0; c < d; ++c) {
                const float x = values[i * d + c];
                norm += x * x;
                sum += double(x) * x;
                if (std::isfinite(x)) {
                    greatest = std::max(greatest, std::abs(x));
                }
            }
            norms.push_back(norm);
            lengths.push_back(std::sqrt(sum));
            const bool fit = norm >= 0x1p-80f && norm <= 0x1p120f;
            inverseNorms.push_back(
                    sum == 0      ? 0.0f
                            : fit ? float(1 / std::sqrt(double(norm)))
                                  : -1.0f);
        }
    }
};

/// Of a scan: for cosine 2 - 2 cos.
inline double exactKey(
        Metric metric,
        const float* x,
        const float* q,
        int d,
        double lengths) {
    double sum = 0;
    for (int c = 0; c < d; ++c) {
        const double difference = double(x[c]) - double(q[c]);
        sum += metric == Metric::L2 ? difference * difference
                                    : -double(x[c]) * double(q[c]);
    }
    return metric != Metric::Cosine ? sum
            : lengths == 0          ? 2
                                    : 2 + 2 * sum / lengths;
}

/// The mean of normalised rows that are fit, of those of |x| above 0.
inline std::vector<float> cosineCenter(const TensorRows& rows, int d) {
    std::vector<double> sums(d);
    int64_t count = 1;
    for (size_t i = 0; i < rows.inverseNorms.size(); ++i) {
        if (rows.inverseNorms[i] > 0) {
            ++count;
            for (int c = 0; c < d; ++c) {
                sums[c] += double(rows.values[i * d + c]) / rows.lengths[i];
            }
        }
    }
    std::vector<float> center(d);
    for (int c = 0; c < d; ++c) {
        center[c] = float(sums[c] / count);
    }
    return center;
}

} // namespace faiss_bits::test
