/// Rows of 16-bit keys that are selected by counting their digits: the kernels
/// at both sides of what a tile, a part and a digit hold, against the oracle.

#include "kernels/select/large_k/DigitSort.h"
#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

/// Whatever the tuning table says of the shape, `batch` rows at a time.
struct ByDigits {
    idx_t batch = 0; ///< 0: as planned

    DigitSortPlan plan(const SelectProblem& problem) const {
        DigitSortPlan made = planDigitSort(problem);
        made.batch = batch ? batch : made.batch;
        return made;
    }
    size_t workspaceBytes(const SelectProblem& problem) const {
        return digitSortWorkspaceBytes(problem, plan(problem));
    }
    void run(
            const SelectProblem& problem,
            Workspace workspace,
            cudaStream_t stream) const {
        runDigitSort(problem, plan(problem), workspace, stream);
    }
};

class DigitSort : public GpuTest {
   protected:
    static SelectCase of(int64_t rows, int64_t cols) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.keyType = DataType::Float16;
        return c;
    }

    static std::vector<int> ksOf(int64_t cols) {
        std::vector<int> ks = {1, int(cols) + 7, 4096, 4097};
        for (int64_t k : {cols / 16, cols / 2, cols - 1, cols}) {
            if (k > 1) {
                ks.push_back(int(k));
            }
        }
        return ks;
    }

    /// Every k twice, on scratch that is dirty in two ways.
    static void expectDigits(
            const SelectCase& c,
            const std::vector<int>& ks,
            const ByDigits& method = {}) {
        SCOPED_TRACE(c.describe());
        SelectData data(c);
        data.rank(*std::max_element(ks.begin(), ks.end()));
        for (int k : ks) {
            const SelectResult first = data.run(k, nullptr, 0xFF, method);
            ASSERT_TRUE(data.check(k, first));
            if (!isSmallTest()) {
                ASSERT_TRUE(first == data.run(k, nullptr, 0x00, method))
                        << "two runs differ, k=" << k;
            }
        }
    }

    /// One block a row, a round of blocks, as many as there are tiles.
    static constexpr int kMultiprocessors[] = {1, 132, 100000};
};

/// A tile, and what a part begins at, is 4096 columns.
const int64_t kCols[] =
        {1, 2, 31, 33, 255, 1025, 4095, 4096, 4097, 8192, 8193, 12289, 70001};

TEST_F(DigitSort, EveryValueAndLength) {
    for (Values values : kAllValues) {
        for (int64_t cols : kCols) {
            SelectCase c = of(3, cols);
            c.values = values;
            c.keyType = cols % 3 ? DataType::Float16 : DataType::BFloat16;
            c.largest = cols % 2 == 1;
            c.multiprocessors = kMultiprocessors[cols % 3];
            expectDigits(c, ksOf(cols));
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Both types in both orders, by one block and by many.
TEST_F(DigitSort, EveryTypeAndSplit) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (bool largest : {false, true}) {
            for (int multiprocessors : kMultiprocessors) {
                for (Values values :
                     {Values::SomeNan,
                      Values::FewDistinct,
                      Values::BothInfinities,
                      Values::SignedZeros}) {
                    SelectCase c = of(2, 20001);
                    c.keyType = type;
                    c.largest = largest;
                    c.values = values;
                    c.multiprocessors = multiprocessors;
                    expectDigits(c, ksOf(c.cols));
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// The last places go to keys that are equal, of which several blocks have
/// some: every k about the ends of the parts.
TEST_F(DigitSort, EqualKeysFallToLowerColumns) {
    for (Values values : {Values::AllEqual, Values::FewDistinct}) {
        SelectCase c = of(2, 16389);
        c.values = values;
        c.multiprocessors = 100000;
        std::vector<int> ks;
        for (int end = 4096; end < c.cols; end += 4096) {
            ks.insert(ks.end(), {end - 1, end, end + 1});
        }
        expectDigits(c, ks);
    }
}

TEST_F(DigitSort, Layouts) {
    for (int64_t cols : {100, 9001}) {
        SelectCase c = of(7, cols);
        c.padding = 3;
        c.shift = 1;
        c.outPadding = 5;
        c.idType = IdType::Int32;
        expectDigits(c, ksOf(cols));
        c.givenIds = true;
        c.idPadding = 2;
        expectDigits(c, ksOf(cols));
        c.sharedIds = true;
        c.idPadding = 0;
        expectDigits(c, ksOf(cols));
        c = of(7, cols);
        c.idOffset = 77;
        c.dropNan = true;
        for (Values values : {Values::SomeNan, Values::AllNan}) {
            c.values = values;
            expectDigits(c, ksOf(cols));
        }
    }
}

TEST_F(DigitSort, BatchesOfRows) {
    for (idx_t batch : {1, 2, 5}) {
        SelectCase c = of(5, 9000);
        c.values = Values::SomeNan;
        c.multiprocessors = 20;
        expectDigits(c, {3000, 9000, 9005}, {batch});
    }
}

TEST_F(DigitSort, ManyRows) {
    SelectCase c = of(700, 5000);
    c.keyType = DataType::BFloat16;
    expectDigits(c, {2500, 5000});
}

/// One long row, in more parts than the sums of a block take at once.
TEST_F(DigitSort, LongRow) {
    for (Values values : {Values::Random, Values::Ascending}) {
        SelectCase c = of(1, 3000001);
        c.values = values;
        expectDigits(c, {20000, 900000});
        c.multiprocessors = 100000;
        expectDigits(c, {300000});
    }
}

/// `sort` takes it where no block has room for the row, and without keys of 16
/// bits goes on to another way; what it gives is the same bit for bit.
TEST_F(DigitSort, IsWhatSortTakes) {
    SelectCase c = of(2, 40000);
    c.values = Values::SomeNan;
    c.algorithm = SelectAlgorithm::Sort;
    SelectData data(c);
    EXPECT_NE(
            planSelection(data.problem(9000)).toString().find("by digits"),
            std::string::npos);
    const SelectResult sorted = data.run(9000, nullptr, 0xFF);
    EXPECT_TRUE(sorted == data.run(9000, nullptr, 0xFF, ByDigits()));
    data.options().algorithm = SelectAlgorithm::SampleThreshold;
    EXPECT_TRUE(sorted == data.run(9000, nullptr, 0xFF));
}

TEST_F(DigitSort, InAGraph) {
    SelectCase c = of(2, 50000);
    SelectData data(c);
    data.rank(20000);
    cudaStream_t stream = nullptr;
    BITS_CUDA_CHECK(cudaStreamCreate(&stream));
    SelectProblem p = data.problem(20000);
    const DigitSortPlan plan = planDigitSort(p);
    const size_t places = size_t(p.rows) * p.k;
    DeviceBuffer<uint8_t> keys(places * sizeOf(p.keyType), kOutputByte);
    DeviceBuffer<uint8_t> ids(places * sizeOf(p.idType), kOutputByte);
    DeviceBuffer<uint8_t> scratch(digitSortWorkspaceBytes(p, plan), 0xFF);
    p.outKeys = keys.data();
    p.outIds = ids.data();
    BITS_CUDA_CHECK(
            cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    runDigitSort(p, plan, {scratch.data(), scratch.size()}, stream);
    cudaGraph_t graph = nullptr;
    BITS_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable = nullptr;
    BITS_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int turn = 0; turn < 2; ++turn) {
        BITS_CUDA_CHECK(cudaGraphLaunch(executable, stream));
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    EXPECT_TRUE(data.check(p.k, {keys.download(), ids.download()}));
    BITS_CUDA_CHECK(cudaGraphExecDestroy(executable));
    BITS_CUDA_CHECK(cudaGraphDestroy(graph));
    BITS_CUDA_CHECK(cudaStreamDestroy(stream));
}

// For the sanitizer.

TEST_F(DigitSort, Small) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Values values :
             {Values::SomeNan, Values::AllEqual, Values::FewDistinct}) {
            SelectCase c = of(2, 9001);
            c.keyType = type;
            c.values = values;
            c.shift = 1;
            c.multiprocessors = 6;
            expectDigits(c, {1, 4097, 9001, 9005}, {1});
        }
    }
}

} // namespace
} // namespace faiss_bits::test
