/// What a search of inverted lists says before it waits.

#include <functional>

#include "faiss_bits/common/WhenEnqueued.h"
#include "kernels/common/CudaCheck.h"
#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::WhenEnqueued;

constexpr int kD = 32;
constexpr int64_t kQueries = 5000; // by estimates, which wait
constexpr int64_t kFew = 4;        // which do not
constexpr int64_t kK = 10;

class EnqueuedSearches : public GpuTest {
   protected:
    /// Lists of 20,000 vectors, each of them `times` times.
    void fill(
            int64_t times,
            faiss::gpu::IndicesOptions ids = faiss::gpu::INDICES_64_BIT) {
        constexpr int64_t n = 20000;
        auto vectors = makeVectors(n, kD, 1);
        for (int64_t i = 0; i < n * kD; ++i) {
            vectors[i] = vectors[i / kD % (n / times) * kD + i % kD];
        }
        quantizer_ = std::make_unique<faiss::IndexFlat>(kD);
        quantizer_->add(kIvfLists, vectors.data());
        faiss::IndexIVFFlat cpu(quantizer_.get(), kD, kIvfLists);
        cpu.is_trained = true;
        cpu.nprobe = 4;
        cpu.add(n, vectors.data());
        faiss::gpu::GpuClonerOptions options;
        options.indicesOptions = ids;
        index_.reset(
                gpu::index_cpu_to_gpu(sharedResources(), 0, &cpu, &options));
    }

    /// Searches, and copies the labels to `seen` whenever it is told.
    int countCalls(int64_t q) {
        const auto queries = makeVectors(q, kD, 2);
        const DeviceBuffer<float> x(queries);
        DeviceBuffer<float> distances(q * kK);
        DeviceBuffer<idx_t> labels(q * kK);
        DeviceBuffer<idx_t> copy(q * kK);
        const auto resources = sharedResources()->getResources();
        const cudaStream_t stream = resources->getDefaultStream(0);
        int calls = 0;
        {
            const WhenEnqueued when([&] {
                BITS_CUDA_CHECK(cudaMemcpyAsync(
                        copy.data(),
                        labels.data(),
                        q * kK * sizeof(idx_t),
                        cudaMemcpyDeviceToDevice,
                        stream));
                ++calls;
            });
            index_->search(q, x.data(), kK, distances.data(), labels.data());
            // Only the first one tells.
            index_->search(q, x.data(), kK, distances.data(), labels.data());
        }
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        if (calls > 0) {
            EXPECT_EQ(copy.download(), labels.download());
        }
        return calls;
    }

    std::unique_ptr<faiss::IndexFlat> quantizer_;
    std::unique_ptr<faiss::Index> index_;
};

TEST_F(EnqueuedSearches, SmallFewQueriesTellOnce) {
    fill(1);
    EXPECT_EQ(countCalls(kFew), 1);
}

/// What is copied in the last call is what the search returns.
TEST_F(EnqueuedSearches, SmallManyQueriesTellBeforeTheyWait) {
    fill(1);
    const int calls = countCalls(kQueries);
    EXPECT_GE(calls, 1);
    EXPECT_LE(calls, 2);
}

/// With more equal distances than candidates nothing is proved.
TEST_F(EnqueuedSearches, SmallQueriesSearchedAgainTellTwice) {
    fill(500);
    EXPECT_EQ(countCalls(kQueries), 2);
}

/// Their labels are made by the host, when all is found.
TEST_F(EnqueuedSearches, SmallIdsOfTheHostTellNobody) {
    fill(1, faiss::gpu::INDICES_CPU);
    EXPECT_EQ(countCalls(kQueries), 0);
}

TEST_F(EnqueuedSearches, SmallOuterOneIsAskedAgain) {
    fill(1);
    int outer = 0;
    const WhenEnqueued when([&] { ++outer; });
    EXPECT_EQ(countCalls(kFew), 1);
    EXPECT_EQ(outer, 0);
    const auto queries = makeVectors(kFew, kD, 2);
    searchOnHost(*index_, queries, kK);
    EXPECT_EQ(outer, 1);
}

} // namespace
} // namespace faiss_bits::test
