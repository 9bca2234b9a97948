/// How runFlatKnn treats streams, the cuBLAS handle and refused arguments.

#include <thread>

#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

KnnCase tiledCase(int64_t q, uint32_t seed) {
    KnnCase c;
    c.q = q;
    c.n = 40001;
    c.d = 16;
    c.data = Vectors::Integers;
    c.maxScratch = kLeastScratch;
    c.seed = seed;
    return c;
}

class FlatKnnStreams : public FlatKnnTest {};

TEST_F(FlatKnnStreams, NonDefaultStream) {
    TestStream stream;
    for (int64_t q : {1, 16, 200}) {
        for (int k : {10, 2500}) {
            KnnCase c = tiledCase(q, 1);
            c.k = k;
            expectNearest(c, stream);
        }
    }
}

TEST_F(FlatKnnStreams, HandleIsLeftAsItWas) {
    TestStream ofHandle;
    TestStream ofCall;
    for (cublasMath_t mode :
         {CUBLAS_DEFAULT_MATH,
          CUBLAS_TF32_TENSOR_OP_MATH,
          CUBLAS_PEDANTIC_MATH}) {
        BITS_CUBLAS_CHECK(cublasSetStream(handle(), ofHandle));
        BITS_CUBLAS_CHECK(cublasSetMathMode(handle(), mode));
        for (int64_t q : {1, 200}) {
            expectNearest(tiledCase(q, 2), ofCall);
            cudaStream_t stream = nullptr;
            cublasMath_t after = CUBLAS_DEFAULT_MATH;
            BITS_CUBLAS_CHECK(cublasGetStream(handle(), &stream));
            BITS_CUBLAS_CHECK(cublasGetMathMode(handle(), &after));
            EXPECT_EQ(stream, static_cast<cudaStream_t>(ofHandle));
            EXPECT_EQ(after, mode);
        }
    }
    BITS_CUBLAS_CHECK(cublasSetStream(handle(), nullptr));
}

TEST_F(FlatKnnStreams, TwoThreadsAtOnce) {
    auto work = [](int64_t q, uint32_t seed, bool& right) {
        CublasHandle handle;
        TestStream stream;
        const KnnData data(tiledCase(q, seed));
        const KnnResult first = data.run(handle, stream, 0xFF);
        right = bool(data.check(first));
        for (int i = 0; i < 10; ++i) {
            right = right && first == data.run(handle, stream, 0xFF);
        }
    };
    bool a = false;
    bool b = false;
    std::thread other([&] { work(200, 3, a); });
    work(8, 4, b);
    other.join();
    EXPECT_TRUE(a);
    EXPECT_TRUE(b);
}

TEST_F(FlatKnnStreams, TooLittleScratchLeavesTheOutput) {
    for (int64_t q : {1, 200}) {
        const KnnData data(tiledCase(q, 5));
        FlatKnnProblem p = data.problem();
        DeviceBuffer<float> outDistances(q * p.k, 0xA5);
        DeviceBuffer<int64_t> outIds(q * p.k, 0xA5);
        p.outDistances = outDistances.data();
        p.outIds = outIds.data();
        const size_t least = flatKnnWorkspaceBytes(p, 0);
        ASSERT_GT(least, 0u);
        DeviceBuffer<uint8_t> scratch(least);
        EXPECT_THROW(
                runFlatKnn(p, {scratch.data(), least - 1}, handle(), nullptr),
                Error);
        EXPECT_EQ(
                outIds.download(),
                std::vector<int64_t>(
                        outIds.size(), int64_t(0xA5A5A5A5A5A5A5A5)));
        runFlatKnn(p, {scratch.data(), least}, handle(), nullptr);
        EXPECT_TRUE(data.check({outDistances.download(), outIds.download()}));
    }
}

/// The size query keeps its word, and a run with any amount in between works.
TEST_F(FlatKnnStreams, AnyScratchAboveTheLeast) {
    for (int64_t q : {1, 16, 300}) {
        KnnCase c = tiledCase(q, 6);
        const KnnData data(c);
        const FlatKnnProblem p = data.problem();
        const size_t least = flatKnnWorkspaceBytes(p, 0);
        for (size_t extra :
             {size_t(1),
              size_t(255),
              least / 7,
              least / 2,
              3 * least,
              20 * least}) {
            const size_t bytes = least + extra;
            EXPECT_LE(flatKnnWorkspaceBytes(p, bytes), bytes);
            FlatKnnProblem run = p;
            DeviceBuffer<float> outDistances(q * p.k, 0xA5);
            DeviceBuffer<int64_t> outIds(q * p.k, 0xA5);
            run.outDistances = outDistances.data();
            run.outIds = outIds.data();
            DeviceBuffer<uint8_t> scratch(bytes);
            runFlatKnn(run, {scratch.data(), bytes}, handle(), nullptr);
            ASSERT_TRUE(
                    data.check({outDistances.download(), outIds.download()}, 4))
                    << "bytes=" << bytes;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
