/// What the paper's systems for large k say without a device: how much scratch
/// they want, and what they refuse.

#include <gtest/gtest.h>

#include "kernels/common/Error.h"
#include "kernels/select/Select.h"

namespace faiss_bits::test {
namespace {

const std::vector<SelectAlgorithm> kMultiPass = {
        SelectAlgorithm::BitsGlobal,
        SelectAlgorithm::SampleSelect,
        SelectAlgorithm::SampleSelectTwoStage,
        SelectAlgorithm::RadixSelect,
        SelectAlgorithm::Sort};

SelectProblem shapeOf(
        SelectAlgorithm algorithm,
        int64_t rows,
        int64_t cols,
        int k) {
    SelectProblem p;
    p.algorithm = algorithm;
    p.rows = rows;
    p.cols = cols;
    p.k = k;
    return p;
}

/// Rows come in batches: many of them want no more than a few.
TEST(MultiPassScratch, IsBoundedForManyRows) {
    for (SelectAlgorithm algorithm : kMultiPass) {
        for (bool sorted : {true, false}) {
            for (int k : {1, 5000, 30000, 40000}) {
                auto p = shapeOf(algorithm, 1 << 16, 1 << 15, k);
                p.sorted = sorted;
                EXPECT_LT(selectWorkspaceBytes(p), size_t(5) << 29)
                        << nameOf(algorithm) << ", k=" << k;
                p.rows = 1 << 10;
                p.cols = 1 << 20;
                EXPECT_LT(selectWorkspaceBytes(p), size_t(5) << 29)
                        << nameOf(algorithm) << ", k=" << k;
            }
        }
    }
}

/// Nor do few long rows that are split over blocks, each with scratch of its
/// own; the result of one row is the least that anything can do with.
TEST(MultiPassScratch, IsBoundedForFewLongRows) {
    for (SelectAlgorithm algorithm : kMultiPass) {
        if (algorithm == SelectAlgorithm::Sort) {
            continue; // two entries for every column
        }
        for (int64_t rows : {1, 7, 100, 1000}) {
            for (int k : {1000, 100000, 1000000}) {
                const auto p = shapeOf(algorithm, rows, 1 << 26, k);
                EXPECT_LT(selectWorkspaceBytes(p), size_t(7) << 29)
                        << nameOf(algorithm) << ", " << rows
                        << " rows, k=" << k;
            }
        }
    }
}

/// One row of n: three entries for every result and a fifth of n, or for a sort
/// of all columns two for every column.
TEST(MultiPassScratch, OfOneLongRow) {
    constexpr size_t kCols = size_t(1) << 27;
    for (SelectAlgorithm algorithm : kMultiPass) {
        for (int k : {100, 1 << 24}) {
            const size_t bytes =
                    selectWorkspaceBytes(shapeOf(algorithm, 1, kCols, k));
            const size_t most = algorithm == SelectAlgorithm::Sort
                    ? 17 * kCols
                    : 25 * size_t(k) + 5 * kCols / 2 + (size_t(1) << 26);
            EXPECT_LT(bytes, most) << nameOf(algorithm) << ", k=" << k;
        }
    }
}

TEST(MultiPassScratch, NoneWhereNothingIsSelected) {
    for (SelectAlgorithm algorithm : kMultiPass) {
        auto p = shapeOf(algorithm, 100, 50000, 50000);
        EXPECT_GT(selectWorkspaceBytes(p), 0u) << nameOf(algorithm);
        p.sorted = false;
        EXPECT_EQ(selectWorkspaceBytes(p), 0u) << nameOf(algorithm);
        EXPECT_EQ(selectWorkspaceBytes(shapeOf(algorithm, 0, 5000, 10)), 0u);
        EXPECT_EQ(selectWorkspaceBytes(shapeOf(algorithm, 5, 0, 10)), 0u);
    }
}

/// Sizes at the limits do not overflow: what is asked for holds the result.
TEST(MultiPassScratch, OfTheLongestRows) {
    for (SelectAlgorithm algorithm : kMultiPass) {
        const int k = 2000000000;
        const auto p = shapeOf(algorithm, 3, kMaxSelectCols, k);
        EXPECT_GT(selectWorkspaceBytes(p), size_t(8) * k) << nameOf(algorithm);
        EXPECT_LT(selectWorkspaceBytes(p), size_t(40) * kMaxSelectCols)
                << nameOf(algorithm);
    }
}

/// One block sorts a row that it has room for, with no scratch: 16384 keys of
/// 32 bits, 32768 of 16.
TEST(MultiPassScratch, NoneForRowsOfOneBlock) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        const int64_t most = type == DataType::Float32 ? 16384 : 32768;
        for (int64_t rows : {1, 1000, 1000000}) {
            auto p = shapeOf(SelectAlgorithm::Sort, rows, most, 100);
            p.keyType = type;
            EXPECT_EQ(selectWorkspaceBytes(p), 0u);
            p.k = int(most) + 5;
            EXPECT_EQ(selectWorkspaceBytes(p), 0u);
            p.cols = most + 1;
            EXPECT_GT(selectWorkspaceBytes(p), 0u);
            p.cols = most;
            p.device.blockSharedBytes = 48 * 1024;
            EXPECT_GT(selectWorkspaceBytes(p), 0u);
        }
    }
}

/// Ids are read where a result is written, so they cost no scratch.
TEST(MultiPassScratch, GivenIdsNeedNone) {
    for (SelectAlgorithm algorithm : kMultiPass) {
        auto p = shapeOf(algorithm, 3, 500000, 10000);
        const size_t bytes = selectWorkspaceBytes(p);
        const int64_t id = 0;
        p.ids = &id;
        EXPECT_EQ(selectWorkspaceBytes(p), bytes) << nameOf(algorithm);
    }
}

} // namespace
} // namespace faiss_bits::test
