#pragma once

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <gtest/gtest.h>

#include "kernels/knn/FlatKnn.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/Cases.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"
#include "tests/knn/KnnCase.h"

/// Runs runFlatKnn on host data and holds the result against the oracle.
namespace faiss_bits::test {

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
        if (case_.mode == SearchMode::Certified) {
            return isCanonical(
                    canonicalTopK(
                            case_.metric,
                            2,
                            q,
                            vectors_.data(),
                            case_.n,
                            case_.d,
                            case_.k),
                    isProduct,
                    outDistances,
                    outIds,
                    case_.k);
        }
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

/// Fixture with a cuBLAS handle.
class FlatKnnTest : public GpuTest {
   protected:
    void prepare() override {
        handle_ = std::make_unique<CublasHandle>();
    }

    void TearDown() override {
        handle_.reset();
        GpuTest::TearDown();
    }

    cublasHandle_t handle() const {
        return *handle_;
    }

    /// In both modes: right by the oracle, and the same bits on scratch that
    /// is dirty in another way.
    void expectNearest(const KnnCase& c, cudaStream_t stream = nullptr) {
        SCOPED_TRACE(c.describe());
        KnnData data(c);
        for (SearchMode mode : {SearchMode::Plain, SearchMode::Certified}) {
            data.options().mode = mode;
            const KnnResult first = data.run(handle(), stream, 0xFF);
            ASSERT_TRUE(data.check(first));
            ASSERT_TRUE(first == data.run(handle(), stream, 0x00))
                    << "two runs differ";
        }
    }

   private:
    std::unique_ptr<CublasHandle> handle_;
};

inline const std::vector<Metric> kMetrics = {Metric::L2, Metric::InnerProduct};

inline const std::vector<Metric> kAllMetrics = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::L1,
        Metric::Linf,
        Metric::Lp,
        Metric::Cosine,
        Metric::Canberra,
        Metric::BrayCurtis,
        Metric::JensenShannon,
        Metric::Jaccard};
inline const std::vector<DataType> kDataTypes = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

} // namespace faiss_bits::test
