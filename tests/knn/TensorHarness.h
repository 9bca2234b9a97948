/// Runs images and scans of tensor cores and checks what passed against exact
/// keys, computed here in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/knn/fused/tensor/TensorScan.h"
#include "kernels/knn/fused/tensor/TensorScanBound.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
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
    int64_t addedLater = 0; ///< vectors written into the image by another call
    unsigned seed = 1;

    std::string name() const {
        return "metric " + std::to_string(int(metric)) +
                " q=" + std::to_string(numQueries) + " n=" + std::to_string(n) +
                " d=" + std::to_string(d) + " " + nameOf(values) +
                " kernel=" + std::to_string(int(kernel)) +
                " type=" + std::to_string(int(type)) +
                " capacity=" + std::to_string(capacity) +
                (filtered ? " filtered" : "") +
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
    return metric != Metric::Cosine ? sum : lengths == 0 ? 0 : sum / lengths;
}

/// An image on the device, with its memory.
class DeviceImage {
   public:
    DeviceImage(
            const TensorCase& c,
            const TensorRows& rows,
            bool areQueries,
            cudaStream_t stream)
            : n_(int64_t(rows.norms.size())),
              memory_(tensorImageBytes(n_, c.d, areQueries), 0x7E),
              rows_(tensorBytes(c.type, rows.values)),
              norms_(rows.norms),
              inverseNorms_(rows.inverseNorms),
              greatest_(1) {
        image = tensorImageAt(memory_.data(), n_, c.d, areQueries);
        TensorImageProblem problem;
        problem.type = c.type;
        problem.d = c.d;
        problem.areQueries = areQueries;
        problem.greatest = greatest_.data();
        problem.image = image;
        const int64_t later = areQueries ? 0 : c.addedLater;
        for (int64_t first : {int64_t(0), n_ - later}) {
            const int64_t end = first == 0 ? n_ - later : n_;
            if (first > 0 && later == 0) {
                continue;
            }
            problem.first = first;
            problem.n = end - first;
            problem.rows = rows_.data() + first * c.d * sizeOf(c.type);
            problem.norms = c.metric == Metric::L2 && !areQueries
                    ? norms_.data() + first
                    : nullptr;
            problem.inverseNorms = c.metric == Metric::Cosine
                    ? inverseNorms_.data() + first
                    : nullptr;
            if (first == 0 && !areQueries) {
                runGreatestComponent(
                        problem.rows,
                        c.type,
                        problem.n,
                        c.d,
                        false,
                        greatest_.data(),
                        stream);
            }
            runTensorImage(problem, stream);
        }
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    }

    const float* norms() const {
        return norms_.data();
    }

    TensorImage image;

   private:
    int64_t n_;
    DeviceBuffer<uint8_t> memory_;
    DeviceBuffer<uint8_t> rows_;
    DeviceBuffer<float> norms_;
    DeviceBuffer<float> inverseNorms_;
    DeviceBuffer<float> greatest_;
};

template <class T>
std::vector<T> downloadFrom(const T* device, size_t count) {
    std::vector<T> out(count);
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    BITS_CUDA_CHECK(cudaMemcpy(
            out.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
}

/// How many pairs were tested, and how many of them left no choice.
struct TensorChecked {
    int64_t pairs = 0;
    int64_t decided = 0;
};

/// Runs the case and checks every pair. Limits: of every 8 queries, four at a
/// rank of the exact keys, two where the bound just decides, infinities.
inline TensorChecked checkTensorCase(const TensorCase& c) {
    SCOPED_TRACE(c.name());
    std::mt19937 random(c.seed * 7919 + unsigned(c.n * 31 + c.d));
    const TensorRows vectors(tensorRows(c, c.n, random), c.d);
    const TensorRows queries(tensorRows(c, c.numQueries, random), c.d);
    const TestStream stream;
    const DeviceImage vectorImage(c, vectors, false, stream);
    const DeviceImage queryImage(c, queries, true, stream);
    const float vectorResidual =
            downloadFrom(vectorImage.image.facts, 1)[0].residual;
    const auto residuals =
            downloadFrom(queryImage.image.residuals, c.numQueries);

    std::vector<uint32_t> allowed((c.n + 31) / 32, ~0u);
    if (c.filtered) {
        for (uint32_t& word : allowed) {
            word = uint32_t(random()) & uint32_t(random());
        }
    }
    // Exact keys and bounds, and limits from them.
    std::vector<double> keys(c.numQueries * c.n);
    std::vector<double> errors(c.numQueries * c.n);
    std::vector<float> limits(c.numQueries);
    for (int64_t q = 0; q < c.numQueries; ++q) {
        double* row = keys.data() + q * c.n;
        double* error = errors.data() + q * c.n;
        for (int64_t v = 0; v < c.n; ++v) {
            row[v] = exactKey(
                    c.metric,
                    vectors.values.data() + v * c.d,
                    queries.values.data() + q * c.d,
                    c.d,
                    vectors.lengths[v] * queries.lengths[q]);
            error[v] = tensorScanError(
                    c.metric,
                    c.d,
                    queries.lengths[q] * (1 + 1e-12),
                    residuals[q],
                    vectors.lengths[v] * (1 + 1e-12),
                    vectorResidual);
            if (c.metric == Metric::Cosine &&
                (vectors.inverseNorms[v] < 0 || queries.inverseNorms[q] < 0)) {
                error[v] = INFINITY;
            }
        }
        std::vector<double> sorted;
        std::copy_if(row, row + c.n, std::back_inserter(sorted), [](double x) {
            return !std::isnan(x);
        });
        std::sort(sorted.begin(), sorted.end());
        const int64_t v = int64_t(random() % c.n);
        const double rank = std::pow(double(random() % 1000) / 1000, 3.0);
        float limit = sorted.empty()
                ? 0.0f
                : float(sorted[size_t(rank * (sorted.size() - 1))]);
        if (q % 8 == 4) {
            limit = std::nextafter(float(row[v] + error[v]), INFINITY);
        } else if (q % 8 == 5) {
            limit = std::nextafter(float(row[v] - error[v]), -INFINITY);
        } else if (q % 8 == 6 && q % 3 == 0) {
            limit = INFINITY;
        } else if (q % 8 == 7 && q % 3 == 0) {
            limit = -INFINITY;
        }
        limits[q] = limit;
    }

    const uint32_t capacity = c.capacity ? c.capacity : uint32_t(c.n) + 3;
    const DeviceBuffer<float> deviceLimits(limits);
    const DeviceBuffer<uint32_t> deviceAllowed(allowed);
    const DeviceBuffer<uint32_t> counts(c.numQueries, 0);
    const DeviceBuffer<uint32_t> columns(c.numQueries * capacity);
    TensorScanProblem problem;
    problem.metric = c.metric;
    problem.numQueries = c.numQueries;
    problem.numVectors = c.n;
    problem.d = c.d;
    problem.queries = queryImage.image;
    problem.vectors = vectorImage.image;
    problem.queryNorms = queryImage.norms();
    problem.allowedBits = c.filtered ? deviceAllowed.data() : nullptr;
    problem.passed = {
            deviceLimits.data(), counts.data(), columns.data(), capacity};
    problem.kernel = c.kernel;
    runTensorScan(problem, deviceTraits(), stream);
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));

    const auto count = counts.download();
    const auto column = columns.download();
    TensorChecked checked;
    std::vector<uint8_t> in(c.n);
    int64_t failures = 0;
    for (int64_t q = 0; q < c.numQueries && failures < 5; ++q) {
        std::fill(in.begin(), in.end(), 0);
        const uint32_t stored = std::min(count[q], capacity);
        for (uint32_t i = 0; i < stored; ++i) {
            const uint32_t v = column[q * capacity + i];
            if (v >= c.n || in[v] || !(allowed[v / 32] >> (v % 32) & 1)) {
                ADD_FAILURE() << "query " << q << " place " << i << ": " << v
                              << (v >= c.n        ? " does not exist"
                                          : in[v] ? " passed twice"
                                                  : " is not allowed");
                ++failures;
                break;
            }
            in[v] = 1;
        }
        for (uint32_t i = stored; i < capacity; ++i) {
            if (column[q * capacity + i] != ~0u) {
                ADD_FAILURE() << "query " << q << ": written behind its end";
                ++failures;
                break;
            }
        }
        int64_t must = 0;
        int64_t may = 0;
        for (int64_t v = 0; v < c.n; ++v) {
            const double key = keys[q * c.n + v];
            const double error = errors[q * c.n + v];
            const bool isAllowed = allowed[v / 32] >> (v % 32) & 1;
            const double limit = limits[q];
            // A limit that is no number decides nothing.
            // NaN passes, and so does what belongs before every number.
            const bool isFirst = std::isnan(vectors.lengths[v]) ||
                    (c.metric == Metric::InnerProduct && key == -INFINITY &&
                     std::isfinite(queries.lengths[q]));
            const bool mustPass = isAllowed &&
                    (isFirst ||
                     (std::isfinite(error) &&
                      (key <= limit - error || limit == INFINITY)));
            const bool mustNot = !isAllowed ||
                    (std::isfinite(error) && std::isfinite(key) &&
                     (key > limit + error || limit == -INFINITY));
            must += mustPass;
            may += !mustNot;
            ++checked.pairs;
            checked.decided += mustPass || mustNot;
            const bool all = count[q] <= capacity;
            if ((mustNot && in[v]) || (mustPass && all && !in[v])) {
                ADD_FAILURE() << "query " << q << " vector " << v << ": key "
                              << key << " error " << error << " limit " << limit
                              << (in[v] ? " passed" : " did not pass");
                if (++failures >= 5) {
                    break;
                }
            }
        }
        EXPECT_GE(int64_t(count[q]), must) << "query " << q;
        EXPECT_LE(int64_t(count[q]), may) << "query " << q;
    }
    return checked;
}

} // namespace faiss_bits::test
