/// Runs images and scans of tensor cores and checks what passed against exact
/// keys.
#pragma once

#include "kernels/knn/fused/tensor/TensorScanBound.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/knn/TensorCase.h"

namespace faiss_bits::test {

/// An image on the device, with its memory.
class DeviceImage {
   public:
    DeviceImage(
            const TensorCase& c,
            const TensorRows& rows,
            bool areQueries,
            cudaStream_t stream,
            const TensorImageFacts* vectorFacts = nullptr,
            const float* center = nullptr)
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
        problem.vectorFacts = vectorFacts;
        problem.center = center;
        if (areQueries && c.metric == Metric::Cosine) {
            problem.outNorms = norms_.data();
        }
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
                        nullptr,
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

/// Images of a scan and its bound; those of cosines less a center.
struct DeviceScanImages {
    DeviceScanImages(
            const TensorCase& c,
            const TensorRows& vectorRows,
            const TensorRows& queryRows,
            cudaStream_t stream)
            : center(cosineCenter(vectorRows, c.d)),
              vectors(c, vectorRows, false, stream, nullptr, centerOf(c)),
              queries(c,
                      queryRows,
                      true,
                      stream,
                      c.metric == Metric::InnerProduct ? nullptr
                                                       : vectors.image.facts,
                      centerOf(c)),
              facts(downloadFrom(vectors.image.facts, 1)[0]),
              residuals(downloadFrom(queries.image.residuals, c.numQueries)),
              norms(downloadFrom(queries.norms(), c.numQueries)) {}

    /// tensorScanError or cosineScanError of a query and a vector.
    double errorOf(
            const TensorCase& c,
            double key,
            int64_t query,
            double queryLength,
            double vectorLength) const {
        if (c.metric == Metric::Cosine) {
            return cosineScanError(
                    c.d,
                    key,
                    std::sqrt(double(norms[query])) *
                            (1 + (c.d + 16) * 0x1p-24),
                    residuals[query],
                    facts.residual,
                    facts.normError);
        }
        return tensorScanError(
                c.metric,
                c.d,
                queryLength * (1 + 1e-12),
                residuals[query],
                vectorLength * (1 + 1e-12),
                facts.residual,
                facts.normError);
    }

    const float* centerOf(const TensorCase& c) const {
        return c.metric == Metric::Cosine ? center.data() : nullptr;
    }

    DeviceBuffer<float> center;
    DeviceImage vectors;
    DeviceImage queries;
    TensorImageFacts facts;
    std::vector<float> residuals;
    std::vector<float> norms;
};

/// How many pairs were tested, and how many of them left no choice.
struct TensorChecked {
    int64_t pairs = 0;
    int64_t decided = 0;
};

/// Runs the case, to lists and to bits, and checks every pair. Limits: of every
/// 8 queries, four at a rank of the exact keys, two where the bound just
/// decides, infinities.
inline TensorChecked checkTensorCase(const TensorCase& c) {
    SCOPED_TRACE(c.name());
    std::mt19937 random(c.seed * 7919 + unsigned(c.n * 31 + c.d));
    const TensorRows vectors(tensorRows(c, c.n, random), c.d);
    const TensorRows queries(tensorRows(c, c.numQueries, random), c.d);
    const TestStream stream;
    const DeviceScanImages images(c, vectors, queries, stream);
    const DeviceImage& vectorImage = images.vectors;
    const DeviceImage& queryImage = images.queries;
    const TensorImageFacts facts = images.facts;

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
            error[v] = images.errorOf(
                    c, row[v], q, queries.lengths[q], vectors.lengths[v]);
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
    problem.passing = c.manyPass ? double(c.n) : 0;
    runTensorScan(problem, deviceTraits(), stream);
    // Products of the same: of each, as far as images tell, its key.
    const bool withProducts = c.metric != Metric::Cosine &&
            c.kernel != TensorScanKernel::MmaSync &&
            canKeepProducts(deviceTraits());
    const DeviceBuffer<uint64_t> products(c.numQueries * capacity);
    const DeviceBuffer<uint32_t> productCounts(c.numQueries, 0);
    if (withProducts) {
        problem.passed.columns = nullptr;
        problem.passed.counts = productCounts.data();
        problem.passed.products = products.data();
        runTensorScan(problem, deviceTraits(), stream);
    }
    // Bits of the same, with a word more a row that nothing is written to.
    const uint64_t words = uint64_t(c.n + 31) / 32 + 1;
    const DeviceBuffer<uint32_t> bits(c.numQueries * words, 0);
    problem.passed = {};
    problem.passed.limits = deviceLimits.data();
    problem.passed.bits = bits.data();
    problem.passed.words = words;
    runTensorScan(problem, deviceTraits(), stream);
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));

    const auto count = counts.download();
    const auto column = columns.download();
    const auto bit = bits.download();
    const auto product = products.download();
    const auto productCount = productCounts.download();
    const auto inverse = downloadFrom(queryImage.image.inverses, c.numQueries);
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
        if (withProducts && count[q] <= capacity) {
            EXPECT_EQ(productCount[q], count[q]) << "query " << q;
            const double unit = double(facts.inverse) * inverse[q];
            for (uint32_t i = 0; i < productCount[q] && i < capacity; ++i) {
                const uint64_t word = product[q * capacity + i];
                const uint32_t v = uint32_t(word);
                const uint32_t bitsOfValue = uint32_t(word >> 32);
                float value;
                std::memcpy(&value, &bitsOfValue, sizeof(value));
                if (v >= c.n || !in[v]) {
                    ADD_FAILURE() << "query " << q << ": the product of " << v;
                    ++failures;
                    break;
                }
                const double key = c.metric == Metric::L2
                        ? images.norms[q] - 2 * unit * value
                        : -unit * value;
                const double error = errors[q * c.n + v];
                const bool isCut =
                        double(vectors.norms[v]) * facts.normScale > 65504;
                // Where scales do not suit each other all passes.
                const double factor = 0.5 * facts.normInverse / unit;
                const bool isFit = c.metric != Metric::L2 ||
                        (!isCut && factor >= 0x1p-24 && factor <= 0x1p15);
                if (isFit && std::isfinite(error) && std::isfinite(key) &&
                    !(std::fabs(key - keys[q * c.n + v]) <= error)) {
                    ADD_FAILURE() << "query " << q << " vector " << v
                                  << ": key " << key << " for "
                                  << keys[q * c.n + v] << ", error " << error;
                    ++failures;
                    break;
                }
            }
        }
        // A list that has room for all has what the bits are set of.
        for (int64_t v = 0; v < int64_t(words) * 32; ++v) {
            const bool isSet = bit[q * words + v / 32] >> (v % 32) & 1;
            if (isSet ? v >= c.n || (count[q] <= capacity && !in[v])
                      : v < c.n && in[v]) {
                ADD_FAILURE()
                        << "query " << q << " bit " << v << " is " << isSet;
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
            // What was added later may be too long for the norms' scale.
            const bool isCut = c.metric == Metric::L2 &&
                    double(vectors.norms[v]) * facts.normScale > 65504;
            const bool mustNot = !isAllowed ||
                    (std::isfinite(error) && !isCut && std::isfinite(key) &&
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
        // Of a list that is too short not all are counted.
        EXPECT_GE(int64_t(count[q]), std::min<int64_t>(must, capacity + 1))
                << "query " << q;
        EXPECT_LE(int64_t(count[q]), may) << "query " << q;
    }
    return checked;
}

} // namespace faiss_bits::test
