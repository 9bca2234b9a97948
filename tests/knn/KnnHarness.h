#pragma once

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <gtest/gtest.h>

#include "kernels/knn/FlatKnn.h"
#include "tests/common/Cases.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"

/// Runs runFlatKnn on host data and holds the result against the oracle.
namespace faiss_bits::test {

constexpr size_t kLeastScratch = 0;
constexpr size_t kRoomyScratch = size_t(1) << 32;

class CublasHandle {
   public:
    CublasHandle() {
        BITS_CUBLAS_CHECK(cublasCreate(&handle_));
    }
    CublasHandle(const CublasHandle&) = delete;
    CublasHandle& operator=(const CublasHandle&) = delete;
    ~CublasHandle() {
        (void)cublasDestroy(handle_);
    }
    operator cublasHandle_t() const {
        return handle_;
    }

   private:
    cublasHandle_t handle_ = nullptr;
};

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

struct KnnResult {
    std::vector<float> distances;
    std::vector<int64_t> ids;

    /// Compares bits, so that NaN equals NaN.
    bool operator==(const KnnResult& other) const {
        return ids == other.ids && distances.size() == other.distances.size() &&
                std::memcmp(
                        distances.data(),
                        other.distances.data(),
                        distances.size() * sizeof(float)) == 0;
    }
};

class KnnData {
   public:
    explicit KnnData(const KnnCase& c) : case_(c) {
        std::mt19937 random(c.seed);
        vectors_ = makeVectors(c, c.n, false, random);
        queries_ = makeVectors(c, c.q, true, random);
        const size_t shiftBytes = c.shift * sizeOf(c.dataType);
        // Stray reads meet NaN.
        deviceVectors_ = DeviceBuffer<uint8_t>(
                packAs(c.dataType,
                       c.vectorsRowMajor ? vectors_
                                         : transposed(vectors_, c.n, c.d)),
                0xFF,
                shiftBytes);
        deviceQueries_ = DeviceBuffer<uint8_t>(
                packAs(c.dataType,
                       c.queriesRowMajor ? queries_
                                         : transposed(queries_, c.q, c.d)),
                0xFF,
                shiftBytes);
        if (c.giveNorms) {
            std::vector<float> norms(c.n);
            for (int64_t i = 0; i < c.n; ++i) {
                const float* vector = vectors_.data() + i * c.d;
                norms[i] = float(innerProduct(vector, vector, c.d));
            }
            deviceNorms_ = DeviceBuffer<float>(norms);
        }
    }

    KnnCase& options() {
        return case_;
    }

    const std::vector<float>& vectors() const {
        return vectors_;
    }

    const std::vector<float>& queries() const {
        return queries_;
    }

    FlatKnnProblem problem() const {
        FlatKnnProblem p = case_.shape();
        p.vectors = deviceVectors_.data();
        p.queries = deviceQueries_.data();
        p.vectorNorms = case_.giveNorms ? deviceNorms_.data() : nullptr;
        return p;
    }

    /// Searches into fresh guarded outputs, with exactly the scratch that the
    /// size query asks for, and waits.
    KnnResult run(cublasHandle_t handle, cudaStream_t stream, int scratchByte)
            const {
        FlatKnnProblem p = problem();
        DeviceBuffer<float> outDistances(case_.q * case_.k, 0xA5);
        DeviceBuffer<uint8_t> outIds(
                case_.q * case_.k * sizeOf(case_.idType), 0xA5);
        p.outDistances = outDistances.data();
        p.outIds = outIds.data();
        DeviceBuffer<uint8_t> scratch(
                flatKnnWorkspaceBytes(p, case_.maxScratch), scratchByte);
        runFlatKnn(p, {scratch.data(), scratch.size()}, handle, stream);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        return {outDistances.download(),
                unpackIds(case_.idType, outIds.download())};
    }

    /// At most `most` queries, evenly spread with the first and the last,
    /// against the oracle.
    ::testing::AssertionResult check(const KnnResult& result, int64_t most = 24)
            const {
        const int64_t count = std::min(most, case_.q);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t query =
                    count == 1 ? 0 : i * (case_.q - 1) / (count - 1);
            auto same = checkQuery(
                    query,
                    result.distances.data() + query * case_.k,
                    result.ids.data() + query * case_.k);
            if (!same) {
                return same << "\n  query " << query << ", "
                            << case_.describe();
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// One query's result [k] against the oracle.
    ::testing::AssertionResult checkQuery(
            int64_t query,
            const float* outDistances,
            const int64_t* outIds) const {
        const bool isProduct = case_.metric == Metric::InnerProduct;
        const float* q = queries_.data() + query * case_.d;
        const auto truth =
                distancesToAll(q, vectors_.data(), case_.n, case_.d, isProduct);
        // NaN is never returned: the places behind the numbers are empty.
        const auto numbers =
                std::count_if(truth.begin(), truth.end(), [](double distance) {
                    return !std::isnan(distance);
                });
        const float empty = isProduct ? -maxOf(DataType::Float32)
                                      : maxOf(DataType::Float32);
        int64_t filled = std::min<int64_t>(case_.k, numbers);
        if (case_.data == Vectors::Special) {
            // In expanded L2 an infinite vector is at infinity minus infinity:
            // it may be one of the empty places.
            const auto finite = std::count_if(
                    truth.begin(), truth.end(), [](double distance) {
                        return std::isfinite(distance);
                    });
            const auto least = std::min<int64_t>(case_.k, finite);
            while (filled > least && outIds[filled - 1] == -1) {
                --filled;
            }
        }
        for (int64_t i = filled; i < case_.k; ++i) {
            if (outIds[i] != -1 || outDistances[i] != empty) {
                return ::testing::AssertionFailure()
                        << "place " << i << " is (" << outDistances[i] << ", "
                        << outIds[i] << "), but there are only " << filled
                        << " numbers: expected (" << empty << ", -1)";
            }
        }
        if (case_.data != Vectors::Uniform && case_.data != Vectors::Special) {
            // Nothing is rounded: the result is the oracle's, bit for bit.
            std::vector<float> exact(truth.begin(), truth.end());
            const auto want = topKOfRow(
                    exact.data(), case_.n, nullptr, 0, filled, isProduct);
            return isTopKOfRow(
                    {exact.data(), case_.n, nullptr, 0},
                    want,
                    outDistances,
                    outIds,
                    filled,
                    empty,
                    false);
        }
        NeighbourCheck check;
        check.distances = &truth;
        check.largest = isProduct;
        check.error = [&](int64_t id) {
            return fp32DistanceError(
                    q, vectors_.data() + id * case_.d, case_.d, isProduct);
        };
        for (int64_t i = 0; i < filled; ++i) {
            if (std::isnan(outDistances[i])) {
                return ::testing::AssertionFailure()
                        << "place " << i << " returns NaN";
            }
            if (!isProduct && outDistances[i] < 0) {
                return ::testing::AssertionFailure()
                        << "place " << i << ": squared distance "
                        << outDistances[i] << " is below zero";
            }
        }
        return isNearest(check, outDistances, outIds, filled);
    }

    /// As run, but the batch is searched in pages of so many queries, each
    /// with scratch of maxScratch.
    KnnResult runPaged(cublasHandle_t handle, int64_t page, size_t maxScratch)
            const {
        DeviceBuffer<float> outDistances(case_.q * case_.k, 0xA5);
        DeviceBuffer<uint8_t> outIds(
                case_.q * case_.k * sizeOf(case_.idType), 0xA5);
        for (int64_t first = 0; first < case_.q; first += page) {
            FlatKnnProblem p = problem();
            p.batchQueries = case_.q;
            p.numQueries = std::min(page, case_.q - first);
            p.queries = deviceQueries_.data() +
                    first * case_.d * sizeOf(case_.dataType);
            p.outDistances = outDistances.data() + first * case_.k;
            p.outIds = outIds.data() + first * case_.k * sizeOf(case_.idType);
            DeviceBuffer<uint8_t> scratch(
                    flatKnnWorkspaceBytes(p, maxScratch), 0xFF);
            runFlatKnn(p, {scratch.data(), scratch.size()}, handle, nullptr);
            BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
        }
        return {outDistances.download(),
                unpackIds(case_.idType, outIds.download())};
    }

   private:
    KnnCase case_;
    std::vector<float> vectors_; // [n, d]
    std::vector<float> queries_; // [q, d]
    DeviceBuffer<uint8_t> deviceVectors_;
    DeviceBuffer<uint8_t> deviceQueries_;
    DeviceBuffer<float> deviceNorms_;
};

/// Fixture with a cuBLAS handle; made only where there is a device.
class FlatKnnTest : public GpuTest {
   protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (!IsSkipped()) {
            handle_ = std::make_unique<CublasHandle>();
        }
    }

    void TearDown() override {
        handle_.reset();
        GpuTest::TearDown();
    }

    cublasHandle_t handle() const {
        return *handle_;
    }

    /// Right by the oracle, and the same bits on scratch that is dirty in
    /// another way.
    void expectNearest(const KnnCase& c, cudaStream_t stream = nullptr) {
        SCOPED_TRACE(c.describe());
        const KnnData data(c);
        const KnnResult first = data.run(handle(), stream, 0xFF);
        ASSERT_TRUE(data.check(first));
        ASSERT_TRUE(first == data.run(handle(), stream, 0x00))
                << "two runs differ";
    }

   private:
    std::unique_ptr<CublasHandle> handle_;
};

inline const std::vector<Metric> kMetrics = {Metric::L2, Metric::InnerProduct};
inline const std::vector<DataType> kDataTypes = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

} // namespace faiss_bits::test
