#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/dropin/FaissFunctions.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HardVectors.h"
#include "tests/common/HostTypes.h"
#include "tests/dropin/SomeRows.h"

/// Calls FAISS's whole searches, as the drop-in library defines them, on host
/// data, and holds the result against the canonical one. No FAISS is loaded:
/// what is left to it throws.
namespace faiss_bits::test {

struct SearchCase {
    bool isL2 = true;
    int64_t n = 9000;
    int64_t q = 3;
    int d = 24;
    int k = 10;
    bool vectorsRowMajor = true;
    bool queriesRowMajor = true;
    bool norms = false; ///< given
    bool ignoreDistances = false;
    size_t shift = 0; ///< elements that every base pointer is off

    Metric metric() const {
        return isL2 ? Metric::L2 : Metric::InnerProduct;
    }
    std::string describe() const {
        std::ostringstream text;
        text << (isL2 ? "L2" : "IP") << " n=" << n << " q=" << q << " d=" << d
             << " k=" << k << (vectorsRowMajor ? "" : " vectors by columns")
             << (queriesRowMajor ? "" : " queries by columns")
             << (norms ? " norms" : "")
             << (ignoreDistances ? " distances ignored" : "")
             << " shift=" << shift;
        return text.str();
    }
};

/// [n, d] as [d, n].
inline std::vector<float> byColumns(
        const std::vector<float>& rows,
        int64_t n,
        int d) {
    std::vector<float> columns(rows.size());
    for (int64_t i = 0; i < n; ++i) {
        for (int j = 0; j < d; ++j) {
            columns[j * n + i] = rows[i * d + j];
        }
    }
    return columns;
}

/// One case on host and device. Index: int or int64_t.
template <class Index>
class SearchData {
   public:
    static constexpr IdType kIdType =
            sizeof(Index) == 4 ? IdType::Int32 : IdType::Int64;
    static constexpr int kOutputByte = 0xA5;

    SearchData(
            const SearchCase& c,
            std::vector<float> vectors,
            std::vector<float> queries)
            : case_(c),
              vectors_(std::move(vectors)),
              queries_(std::move(queries)),
              deviceVectors_(
                      c.vectorsRowMajor ? vectors_
                                        : byColumns(vectors_, c.n, c.d),
                      0xFF,
                      c.shift),
              deviceQueries_(
                      c.queriesRowMajor ? queries_
                                        : byColumns(queries_, c.q, c.d),
                      0xFF,
                      c.shift),
              outDistances_(c.q * c.k, kOutputByte, c.shift),
              outIds_(c.q * c.k, kOutputByte, c.shift) {
        std::vector<float> norms;
        for (int64_t i = 0; c.norms && i < c.n; ++i) {
            const float* x = vectors_.data() + i * c.d;
            norms.push_back(float(innerProduct(x, x, c.d)));
        }
        norms_ = DeviceBuffer<float>(norms, 0xFF, c.shift);
    }

    /// Calls the function; does not wait. Throws what is left to FAISS.
    void call(cudaStream_t stream) {
        const SearchCase& c = case_;
        auto vectors =
                matrixOf(deviceVectors_.data(), c.n, c.d, c.vectorsRowMajor);
        auto queries =
                matrixOf(deviceQueries_.data(), c.q, c.d, c.queriesRowMajor);
        auto distances = matrixOf(outDistances_.data(), c.q, c.k, true);
        auto ids = matrixOf(outIds_.data(), c.q, c.k, true);
        faiss::gpu::Vector<float, Index> norms{
                norms_.data(), {Index(1)}, {Index(c.n)}};
        if (c.isL2) {
            faiss::gpu::runL2Distance(
                    nullptr,
                    stream,
                    vectors,
                    c.vectorsRowMajor,
                    c.norms ? &norms : nullptr,
                    queries,
                    c.queriesRowMajor,
                    c.k,
                    distances,
                    ids,
                    c.ignoreDistances);
        } else {
            faiss::gpu::runIPDistance(
                    nullptr,
                    stream,
                    vectors,
                    c.vectorsRowMajor,
                    queries,
                    c.queriesRowMajor,
                    c.k,
                    distances,
                    ids);
        }
    }

    void clearOutputs() {
        outDistances_.fillBytes(kOutputByte);
        outIds_.fillBytes(kOutputByte);
    }

    /// Some rows, the first and the last among them.
    ::testing::AssertionResult check(int64_t most = 16) {
        const auto found = outIds_.download();
        return someRowsAreCanonical(
                case_,
                outDistances_.download(),
                std::vector<int64_t>(found.begin(), found.end()),
                [&](int64_t row) { return wanted(row); },
                most);
    }

   private:
    template <class T>
    static faiss::gpu::Matrix<T, Index> matrixOf(
            T* data,
            int64_t count,
            int64_t d,
            bool rowMajor) {
        const Index rows = Index(rowMajor ? count : d);
        const Index cols = Index(rowMajor ? d : count);
        // The last stride of such a tensor is never read.
        return {data, {cols, Index(77)}, {rows, cols}};
    }

    /// The canonical result, without what FAISS never returns.
    std::vector<Ranked> wanted(int64_t row) const {
        const SearchCase& c = case_;
        auto best = canonicalTopK(
                c.metric(),
                0,
                queries_.data() + row * c.d,
                vectors_.data(),
                c.n,
                c.d,
                c.k);
        const double worst = std::numeric_limits<float>::max();
        std::erase_if(best, [&](const Ranked& one) {
            return c.isL2 ? one.key >= worst : one.key <= -worst;
        });
        return best;
    }

    SearchCase case_;
    std::vector<float> vectors_; // [n, d]
    std::vector<float> queries_; // [q, d]
    DeviceBuffer<float> deviceVectors_;
    DeviceBuffer<float> deviceQueries_;
    DeviceBuffer<float> norms_;
    DeviceBuffer<float> outDistances_;
    DeviceBuffer<Index> outIds_;
};

template <class Index>
void expectSearchesAs(
        const SearchCase& c,
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        cudaStream_t stream) {
    SearchData<Index> data(c, vectors, queries);
    ASSERT_NO_THROW(data.call(stream)) << c.describe();
    ASSERT_TRUE(data.check());
}

/// The case through both symbols of its function.
inline void expectSearches(
        const SearchCase& c,
        Hard kind,
        cudaStream_t stream = nullptr) {
    SCOPED_TRACE("data " + std::to_string(int(kind)));
    const auto vectors = makeHard(kind, c.n, c.d, 1);
    const auto queries = makeHard(kind, c.q, c.d, 2);
    expectSearchesAs<int>(c, vectors, queries, stream);
    expectSearchesAs<int64_t>(c, vectors, queries, stream);
}

/// It goes to FAISS, which is not there.
inline void expectLeft(const SearchCase& c) {
    SearchData<int64_t> data(
            c, std::vector<float>(c.n * c.d), std::vector<float>(c.q * c.d));
    ASSERT_THROW(data.call(nullptr), std::runtime_error) << c.describe();
}

} // namespace faiss_bits::test
