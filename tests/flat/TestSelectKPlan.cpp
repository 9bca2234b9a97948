/// What selectK would do, without a device: planSelectKForH200.

#include <gtest/gtest.h>

#include "faiss_bits/common/PagePlan.h"
#include "faiss_bits/select/GpuBitsSelect.h"
#include "kernels/select/SelectCost.h"
#include "tests/flat/HostHarness.h"

namespace faiss_bits::test {
namespace {

using gpu::GpuSelectParams;
using gpu::GpuSelectPlan;
using gpu::planSelectKForH200;

GpuSelectParams paramsOf(idx_t rows, idx_t cols, int k) {
    GpuSelectParams params;
    params.rows = rows;
    params.cols = cols;
    params.k = k;
    return params;
}

SelectProblem problemOf(const GpuSelectParams& params) {
    SelectProblem p;
    p.rows = params.rows;
    p.cols = params.cols;
    p.k = params.k;
    p.keyType = params.keyType;
    p.algorithm = params.algorithm;
    return p;
}

TEST(SelectKPlan, OnTheDeviceIsThePlanOfTheKernels) {
    for (const GpuSelectParams& params :
         {paramsOf(64, 1 << 24, 100),
          paramsOf(1000, 100, 10),
          paramsOf(1, 5000, 3),
          paramsOf(20, 1 << 20, 50000)}) {
        const SelectProblem problem = problemOf(params);
        const SelectPlan expected = planSelection(problem);
        const GpuSelectPlan plan = planSelectKForH200(params, false);
        EXPECT_EQ(plan.algorithm, nameOf(expected.algorithm()));
        EXPECT_EQ(plan.details, expected.toString());
        EXPECT_EQ(plan.scratchBytes, expected.workspaceBytes());
        EXPECT_EQ(plan.pages, 1);
        EXPECT_EQ(plan.rowsPerPage, params.rows);
        EXPECT_EQ(plan.rowsPerBatch, params.rows);
        EXPECT_NEAR(
                plan.expectedMs,
                selectMicroseconds(expected, problem) / 1e3,
                1e-9);
        const std::string text = plan.toString();
        EXPECT_EQ(text.find(plan.algorithm), 0) << text;
        EXPECT_NE(text.find(plan.details), std::string::npos) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos);
    }
}

/// Host rows come in pages of 16 MiB.
TEST(SelectKPlan, Pages) {
    const GpuSelectPlan pages = planSelectKForH200(paramsOf(64, 1 << 22, 10));
    EXPECT_EQ(pages.pages, 64);
    EXPECT_EQ(pages.rowsPerPage, 1);
    EXPECT_GT(
            pages.expectedMs,
            planSelectKForH200(paramsOf(64, 1 << 22, 10), false).expectedMs);

    // In one page on the device, whose scratch has a bound.
    GpuSelectParams params = paramsOf(600, 1 << 20, 1 << 19);
    params.algorithm = SelectAlgorithm::RadixSelect;
    const GpuSelectPlan whole = planSelectKForH200(params, false);
    EXPECT_EQ(whole.pages, 1);
    EXPECT_EQ(whole.algorithm, "radix_select");
    EXPECT_LE(whole.scratchBytes, size_t(1536) << 20);
    SelectProblem batch = problemOf(params);
    batch.rows = whole.rowsPerBatch;
    EXPECT_EQ(planSelection(batch).workspaceBytes(), whole.scratchBytes);
}

TEST(SelectKPlan, Arguments) {
    EXPECT_EQ(planSelectKForH200(paramsOf(0, 10, 1)).algorithm, "none");
    EXPECT_EQ(
            planSelectKForH200(paramsOf(0, 10, 1)).toString().find("none"), 0);
    for (const auto& [params, name, value] :
         {std::tuple(paramsOf(-1, 10, 1), "rows", "-1"),
          std::tuple(paramsOf(1, -10, 1), "cols", "-10"),
          std::tuple(paramsOf(1, 10, 0), "k", "0")}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { planSelectKForH200(params); }, name, value));
    }
    GpuSelectParams params = paramsOf(1, 10000, 3000);
    params.algorithm = SelectAlgorithm::Bits;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { planSelectKForH200(params); }, "algorithm", "bits"));
}

/// As selectK: rows with gaps lie on the device.
TEST(SelectKPlan, RowsWithGaps) {
    GpuSelectParams params = paramsOf(20, 100000, 10);
    const GpuSelectPlan whole = planSelectKForH200(params, false);
    params.rowStride = 100001;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { planSelectKForH200(params); }, "rowStride", "100001"));
    const GpuSelectPlan plan = planSelectKForH200(params, false);
    EXPECT_EQ(plan.algorithm, whole.algorithm);
    EXPECT_EQ(plan.pages, 1);

    params.rowStride = params.cols; // no gaps
    EXPECT_EQ(planSelectKForH200(params).rowsPerPage, 20);
    params.idStride = 100002; // of ids that are not there
    EXPECT_EQ(planSelectKForH200(params).rowsPerPage, 20);
    int64_t someId = 0;
    params.ids = &someId;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { planSelectKForH200(params); }, "idStride", "100002"));
    EXPECT_EQ(planSelectKForH200(params, false).pages, 1);

    params.rowStride = 99999;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { planSelectKForH200(params, false); }, "rowStride", "99999"));
}

} // namespace
} // namespace faiss_bits::test
