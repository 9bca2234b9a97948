/// Argument checks and the size query of kernels/select. Neither makes a CUDA
/// call, so all of this runs without a device: the devices are hidden before
/// the first call, and pointers are addresses of nothing.

#include <cstdlib>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

template <class T = void>
T* nowhere() {
    return reinterpret_cast<T*>(uintptr_t(1) << 20);
}

class SelectArguments : public ::testing::Test {
   protected:
    static void SetUpTestSuite() {
        // Any CUDA call would now fail, on a GPU machine too.
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
    }

    SelectArguments() {
        good.rows = 4;
        good.cols = 1000000;
        good.k = 100;
        good.keys = nowhere();
        good.outKeys = nowhere();
        good.outIds = nowhere();
    }

    /// Both calls check the shape.
    void expectBadShape(
            const SelectProblem& p,
            const char* name,
            const std::string& value) {
        EXPECT_TRUE(
                throwsNaming([&] { selectWorkspaceBytes(p); }, name, value));
        EXPECT_TRUE(throwsNaming(
                [&] {
                    runSelect(p, {nowhere(), size_t(1) << 40}, nullptr);
                },
                name,
                value));
    }

    void expectBadRun(
            const SelectProblem& p,
            const char* name,
            const std::string& value = "") {
        EXPECT_TRUE(throwsNaming(
                [&] {
                    runSelect(p, {nowhere(), size_t(1) << 40}, nullptr);
                },
                name,
                value));
    }

    SelectProblem good;
};

TEST_F(SelectArguments, SizeQueryNeedsNoDevice) {
    SelectProblem shape;
    shape.algorithm = SelectAlgorithm::Bits;
    shape.rows = 1;
    shape.cols = int64_t(1) << 27;
    shape.k = 2048;
    EXPECT_GT(selectWorkspaceBytes(shape), 0u) << "one long row is split";
    EXPECT_LT(selectWorkspaceBytes(shape), size_t(1) << 28)
            << "scratch is small against the keys";
    shape.rows = 16384;
    shape.cols = 32768;
    EXPECT_EQ(selectWorkspaceBytes(shape), 0u) << "none for many rows";
}

TEST_F(SelectArguments, SizeQueryReadsTheShapeOnly) {
    SelectProblem shape = good;
    const size_t bytes = selectWorkspaceBytes(shape);
    shape.keys = shape.outKeys = shape.outIds = nullptr;
    EXPECT_EQ(selectWorkspaceBytes(shape), bytes);
}

TEST_F(SelectArguments, BadK) {
    std::vector<SelectAlgorithm> all = selectAlgorithms();
    all.push_back(SelectAlgorithm::Auto);
    for (SelectAlgorithm algorithm : all) {
        good.algorithm = algorithm;
        for (int k : {0, -1}) {
            good.k = k;
            expectBadShape(good, "k", std::to_string(k));
        }
    }
}

TEST_F(SelectArguments, AnyKIsAGoodShape) {
    for (int k : {1, kMaxSelectK, kMaxSelectK + 1, 1000000, 5000000, 1 << 30}) {
        good.k = k;
        EXPECT_NO_THROW(selectWorkspaceBytes(good)) << "k=" << k;
    }
}

TEST_F(SelectArguments, BadRows) {
    for (idx_t rows : {idx_t(-1), kMaxSelectRows + 1}) {
        good.rows = rows;
        expectBadShape(good, "rows", std::to_string(rows));
    }
}

TEST_F(SelectArguments, BadCols) {
    for (idx_t cols : {idx_t(-1), kMaxSelectCols + 1}) {
        good.cols = cols;
        expectBadShape(good, "cols", std::to_string(cols));
    }
}

TEST_F(SelectArguments, BadRowStride) {
    for (idx_t stride : {good.cols - 1, idx_t(1), idx_t(-1)}) {
        good.rowStride = stride;
        expectBadShape(good, "rowStride", std::to_string(stride));
    }
}

TEST_F(SelectArguments, BadIdStride) {
    for (idx_t stride : {good.cols - 1, idx_t(1), idx_t(-1)}) {
        good.idStride = stride;
        expectBadShape(good, "idStride", std::to_string(stride));
    }
}

TEST_F(SelectArguments, BadKeyType) {
    good.keyType = static_cast<DataType>(7);
    expectBadShape(good, "keyType", "7");
}

TEST_F(SelectArguments, BadIdType) {
    good.idType = static_cast<IdType>(19);
    expectBadShape(good, "idType", "19");
}

TEST_F(SelectArguments, BadDevice) {
    for (int count : {0, -3}) {
        good.device.multiprocessors = count;
        expectBadShape(good, "multiprocessors", std::to_string(count));
    }
    good.device = {};
    for (size_t bytes : {size_t(0), size_t(48 * 1024 - 1), size_t(1) << 20}) {
        good.device.blockSharedBytes = bytes;
        expectBadShape(good, "blockSharedBytes", std::to_string(bytes));
    }
}

TEST_F(SelectArguments, BadOutStride) {
    for (idx_t stride : {idx_t(99), idx_t(-1)}) {
        good.outStride = stride;
        expectBadRun(good, "outStride", std::to_string(stride));
    }
}

TEST_F(SelectArguments, NegatedKeysNeedABiasAndNoFloor) {
    good.negated = true;
    expectBadRun(good, "negated");
    float bias = 0;
    good.colBias = &bias;
    expectBadRun(good, "negated");
}

TEST_F(SelectArguments, NullPointers) {
    SelectProblem p = good;
    p.sharedIds = true;
    expectBadRun(p, "ids");
    p = good;
    p.keys = nullptr;
    expectBadRun(p, "keys");
    p = good;
    p.outKeys = nullptr;
    expectBadRun(p, "outKeys");
    p = good;
    p.outIds = nullptr;
    expectBadRun(p, "outIds");
}

TEST_F(SelectArguments, BiasNeedsColumnsAndItsOwnKindOfKeys) {
    SelectProblem p = good;
    p.rowBias = nowhere<float>();
    expectBadRun(p, "colBias");

    good.colBias = good.rowBias = nowhere<float>();
    p = good;
    p.keyType = DataType::Float16;
    expectBadRun(p, "colBias");
    p = good;
    p.largest = true;
    expectBadRun(p, "colBias");

    // The queries' norms may be left out.
    good.rowBias = nullptr;
    EXPECT_NO_THROW(selectWorkspaceBytes(good));
    p = good;
    p.largest = true;
    expectBadRun(p, "colBias");
}

TEST_F(SelectArguments, OffsetThatNarrowIdsCannotHold) {
    good.idType = IdType::Int32;
    good.idOffset = (idx_t(1) << 31) - good.cols + 1;
    expectBadRun(good, "idOffset", std::to_string(good.idOffset));
}

TEST_F(SelectArguments, WorkspaceTooSmall) {
    good.algorithm = SelectAlgorithm::Bits;
    const size_t needed = selectWorkspaceBytes(good);
    ASSERT_GT(needed, 0u);
    for (size_t bytes : {size_t(0), needed - 1}) {
        EXPECT_TRUE(throwsNaming(
                [&] {
                    runSelect(good, {nowhere(), bytes}, nullptr);
                },
                "workspace",
                std::to_string(bytes)));
    }
    EXPECT_TRUE(throwsNaming(
            [&] {
                runSelect(good, {nullptr, needed}, nullptr);
            },
            "workspace"));
}

} // namespace
} // namespace faiss_bits::test
