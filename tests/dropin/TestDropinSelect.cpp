#include <thread>

#include "tests/common/CapturedGraph.h"
#include "tests/dropin/DropinHarness.h"

/// FAISS's functions on our kernels. Where nothing else is said, each test runs
/// all three of them with both kinds of ids.
namespace faiss_bits::test {
namespace {

using Dropin = GpuTest;

void forEachFunction(DropinCase c, cudaStream_t stream = nullptr) {
    for (Which which : kAllFunctions) {
        for (bool largest : {false, true}) {
            if (which == Which::L2 && largest) {
                continue;
            }
            c.which = which;
            c.largest = largest;
            expectSelects(c, stream);
        }
    }
}

TEST_F(Dropin, ValuesOfEveryKind) {
    for (Values values : kAllValues) {
        for (int k : {1, 10, 300}) {
            DropinCase c;
            c.rows = 5;
            c.cols = 1000;
            c.k = k;
            c.values = values;
            forEachFunction(c);
        }
    }
}

// Every path of our own kernels once, for compute-sanitizer
// (--gtest_filter=*Small*); those of the selection have tests of their own.
class DropinSmall : public GpuTest {};

TEST_F(DropinSmall, EveryPath) {
    DropinCase c;
    c.rows = 3;
    c.cols = 200;
    c.k = 40;
    c.values = Values::BothInfinities; // some keys have to go
    forEachFunction(c);
    c.padding = c.outPadding = c.outIdPadding = 5;
    c.idPadding = 9;
    forEachFunction(c);
    c.outIdPadding = 7; // outputs by way of scratch
    forEachFunction(c);
    c.inPlace = true;
    forEachFunction(c);
    c.cols = 20; // fewer than k
    c.inPlace = false;
    forEachFunction(c);
}

TEST_F(Dropin, BothSidesOfEveryK) {
    for (int k : kSelectKs) {
        DropinCase c;
        c.rows = 3;
        c.cols = 3000;
        c.k = k;
        c.seed = k;
        forEachFunction(c);
    }
}

TEST_F(Dropin, BothSidesOfEveryNumberOfColumns) {
    for (int64_t cols : kSelectCols) {
        DropinCase c;
        c.rows = 2;
        c.cols = cols;
        c.k = 40; // more than some rows have
        c.values = Values::HalfInfinite;
        forEachFunction(c);
    }
}

// No finite number is better than the worst one, which FAISS uses for "none".
TEST_F(Dropin, WorstFiniteNumberIsNoResult) {
    for (bool largest : {false, true}) {
        const float worst =
                largest ? -maxOf(DataType::Float32) : maxOf(DataType::Float32);
        const std::vector<float> keys = {worst, 3.f, worst, 2.f};
        DeviceBuffer<float> in(keys);
        DeviceBuffer<float> outKeys(4);
        DeviceBuffer<int> outIds(4);
        auto inTensor = matrixOf<float, int>(in.data(), 1, 4, 4);
        auto keyTensor = matrixOf<float, int>(outKeys.data(), 1, 4, 4);
        auto idTensor = matrixOf<int, int>(outIds.data(), 1, 4, 4);
        faiss::gpu::runBlockSelect(
                inTensor, keyTensor, idTensor, largest, 4, nullptr);
        const std::vector<int> ids = largest ? std::vector<int>{1, 3, -1, -1}
                                             : std::vector<int>{3, 1, -1, -1};
        EXPECT_EQ(outIds.download(), ids);
        EXPECT_EQ(outKeys.download()[3], worst);
    }
}

// FAISS clamps at zero after it has added the queries' norms.
TEST_F(Dropin, L2SelectMinKeepsNegativeSums) {
    const std::vector<float> product = {-5.f, -9.f, 1.f};
    const std::vector<float> norms = {1.f, 2.f, 3.f};
    DeviceBuffer<float> in(product);
    DeviceBuffer<float> bias(norms);
    for (int k : {1, 3}) {
        DeviceBuffer<float> outKeys(k);
        DeviceBuffer<int64_t> outIds(k);
        auto inTensor = matrixOf<float, int64_t>(in.data(), 1, 3, 3);
        auto keyTensor = matrixOf<float, int64_t>(outKeys.data(), 1, k, k);
        auto idTensor = matrixOf<int64_t, int64_t>(outIds.data(), 1, k, k);
        faiss::gpu::Vector<float, int64_t> biasTensor{bias.data(), {1}, {3}};
        faiss::gpu::runL2SelectMin(
                inTensor, biasTensor, keyTensor, idTensor, k, nullptr);
        const std::vector<float> keys = {-7.f, -4.f, 4.f};
        const std::vector<int64_t> ids = {1, 0, 2};
        EXPECT_EQ(
                outKeys.download(),
                std::vector<float>(keys.begin(), keys.begin() + k));
        EXPECT_EQ(
                outIds.download(),
                std::vector<int64_t>(ids.begin(), ids.begin() + k));
    }
}

TEST_F(Dropin, RowsWithPadding) {
    for (int64_t padding : {1, 4, 24}) {
        DropinCase c;
        c.rows = 7;
        c.cols = 500;
        c.k = 20;
        c.padding = padding;
        c.idPadding = padding + 3;
        c.outPadding = c.outIdPadding = padding;
        forEachFunction(c);
        c.outIdPadding = padding + 5; // two strides
        forEachFunction(c);
        c.shift = 1;
        forEachFunction(c);
    }
}

// The stride of a single row may be anything: FAISS never uses it.
TEST_F(Dropin, StrideOfASingleRowIsNotRead) {
    for (int64_t stride : {-5, 0, 3}) {
        const std::vector<float> keys = {4.f, 1.f, 3.f, 2.f};
        DeviceBuffer<float> in(keys);
        DeviceBuffer<float> outKeys(2);
        DeviceBuffer<int> outIds(2);
        auto inTensor = matrixOf<float, int>(in.data(), 1, 4, stride);
        auto keyTensor = matrixOf<float, int>(outKeys.data(), 1, 2, stride);
        auto idTensor = matrixOf<int, int>(outIds.data(), 1, 2, -stride);
        faiss::gpu::runBlockSelect(
                inTensor, keyTensor, idTensor, false, 2, nullptr);
        EXPECT_EQ(outIds.download(), (std::vector<int>{1, 3}));
        EXPECT_EQ(outKeys.download(), (std::vector<float>{1.f, 2.f}));
    }
}

TEST_F(Dropin, OutputsInTheInputs) {
    for (int64_t rows : {1, 6}) {
        for (Values values : {Values::Random, Values::HalfInfinite}) {
            DropinCase c;
            c.rows = rows;
            c.cols = 700;
            c.k = 300;
            c.values = values;
            c.inPlace = true;
            forEachFunction(c);
        }
    }
}

TEST_F(Dropin, NoRowsAndNoColumns) {
    DropinCase c;
    c.rows = 0;
    c.cols = 100;
    c.k = 5;
    forEachFunction(c);
    c.rows = 4;
    c.cols = 0;
    forEachFunction(c);
}

TEST_F(Dropin, FewLongRowsTakeScratch) {
    for (int64_t rows : {1, 3}) {
        for (int k : {1, 100, 2048}) {
            DropinCase c;
            c.rows = rows;
            c.cols = 1 << 20;
            c.k = k;
            for (Which which : {Which::Block, Which::L2}) {
                c.which = which;
                expectSelects(c);
            }
        }
    }
}

// As many rows as FAISS takes at a time when it searches a coarse quantizer.
TEST_F(Dropin, ManyShortRows) {
    DropinCase c;
    c.rows = 20000;
    c.cols = 100;
    c.k = 8;
    c.values = Values::SomeNan;
    expectSelects(c);
    c.which = Which::L2;
    expectSelects(c);
}

// What FAISS does with more columns than fit: the best of each tile, side by
// side, then the best of those. Missing ones are (worst, anything).
TEST_F(Dropin, MissingPlacesOfAnEarlierPassStayMissing) {
    const float worst = maxOf(DataType::Float32);
    const std::vector<float> keys = {5.f, worst, 2.f, worst, 1.f, worst};
    const std::vector<int64_t> ids = {7, 99, 20, 119, 40, 139};
    DeviceBuffer<float> in(keys);
    DeviceBuffer<int64_t> inIds(ids);
    DeviceBuffer<float> outKeys(5);
    DeviceBuffer<int64_t> outIds(5);
    auto inTensor = matrixOf<float, int64_t>(in.data(), 1, 6, 6);
    auto inIdTensor = matrixOf<int64_t, int64_t>(inIds.data(), 1, 6, 6);
    auto keyTensor = matrixOf<float, int64_t>(outKeys.data(), 1, 5, 5);
    auto idTensor = matrixOf<int64_t, int64_t>(outIds.data(), 1, 5, 5);
    faiss::gpu::runBlockSelectPair(
            inTensor, inIdTensor, keyTensor, idTensor, false, 5, nullptr);
    EXPECT_EQ(outIds.download(), (std::vector<int64_t>{40, 20, 7, -1, -1}));
    EXPECT_EQ(
            outKeys.download(),
            (std::vector<float>{1.f, 2.f, 5.f, worst, worst}));
}

DropinCase longRow() {
    DropinCase c;
    c.rows = 2;
    c.cols = 300000; // split over blocks: takes scratch
    c.k = 64;
    return c;
}

TEST_F(Dropin, OnAnotherStream) {
    const TestStream stream;
    forEachFunction(longRow(), stream);
}

TEST_F(Dropin, IsOrderedOnTheStream) {
    const TestStream stream;
    DropinCase c = longRow();
    c.seed = 3;
    DropinData<int64_t> data(c);
    // The call comes behind a long row of others on its stream.
    for (int i = 0; i < 50; ++i) {
        data.call(stream);
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    ASSERT_TRUE(data.check());
}

TEST_F(Dropin, CanBeCapturedInAGraph) {
    for (Which which : kAllFunctions) {
        const TestStream stream;
        DropinCase c = longRow();
        c.which = which;
        DropinData<int64_t> data(c);
        CapturedGraph graph(stream, [&] { data.call(stream); });
        for (int i = 0; i < 3; ++i) {
            data.clearOutputs();
            graph.launch();
            ASSERT_TRUE(data.check());
        }
    }
}

TEST_F(Dropin, FromManyThreads) {
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t, &wrong] {
            const TestStream stream;
            DropinCase c = longRow();
            c.seed = 10 + t;
            DropinData<int> data(c);
            for (int i = 0; i < 20; ++i) {
                data.clearOutputs();
                data.call(stream);
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                wrong[t] += data.check() ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(Dropin, OnASecondDevice) {
    int count = 0;
    BITS_CUDA_CHECK(cudaGetDeviceCount(&count));
    if (count < 2) {
        GTEST_SKIP() << "needs two CUDA devices";
    }
    for (int device : {1, 0, 1}) {
        BITS_CUDA_CHECK(cudaSetDevice(device));
        forEachFunction(longRow());
    }
    BITS_CUDA_CHECK(cudaSetDevice(0));
}

} // namespace
} // namespace faiss_bits::test
