/// What runSelect returns: every k, every kind of values, ids, biases.

#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

const std::vector<DataType> kKeyTypes = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

class SelectValues : public GpuTest,
                     public ::testing::WithParamInterface<Values> {};

TEST_P(SelectValues, MatchOracle) {
    // One block a row, a row split over blocks, and more rows than blocks.
    const std::pair<int64_t, int64_t> shapes[] = {
            {3, 4097}, {1, 300001}, {1200, 700}};
    for (auto [rows, cols] : shapes) {
        for (DataType type : kKeyTypes) {
            for (bool largest : {false, true}) {
                SelectCase c;
                c.rows = rows;
                c.cols = cols;
                c.values = GetParam();
                c.keyType = type;
                c.largest = largest;
                expectSelects(
                        c, rows > 100 ? std::vector<int>{1, 50, 700} : kFewKs);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        SelectValues,
        ::testing::ValuesIn(kAllValues),
        [](const auto& info) { return nameOf(info.param); });

class SelectEveryK : public GpuTest,
                     public ::testing::WithParamInterface<DataType> {};

TEST_P(SelectEveryK, MatchOracle) {
    const std::pair<int64_t, int64_t> shapes[] = {
            {5, 5000}, {1, 100001}, {40, 2048}};
    for (auto [rows, cols] : shapes) {
        for (Values values : {Values::Random, Values::FewDistinct}) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.values = values;
            c.keyType = GetParam();
            expectSelects(c, kSelectKs);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        SelectEveryK,
        ::testing::ValuesIn(kKeyTypes),
        [](const auto& info) { return nameOf(info.param); });

class SelectIds : public GpuTest {};

TEST_F(SelectIds, OffsetIsAddedToTheColumn) {
    for (int64_t offset :
         {int64_t(1), int64_t(1) << 31, (int64_t(1) << 33) + 5, int64_t(-7)}) {
        for (auto [rows, cols] :
             {std::pair<int64_t, int64_t>{3, 5000}, {1, 200000}}) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.values = Values::FewDistinct;
            c.idOffset = offset;
            expectSelects(c, {1, 33, 2048});
        }
    }
}

TEST_F(SelectIds, OffsetWithNarrowIds) {
    SelectCase c;
    c.rows = 2;
    c.cols = 5000;
    c.idType = IdType::Int32;
    // The last column has the largest id that fits.
    c.idOffset = (int64_t(1) << 31) - c.cols;
    c.values = Values::Descending;
    expectSelects(c, {1, 100, 2048});
}

TEST_F(SelectIds, NarrowImplicitIds) {
    for (DataType type : kKeyTypes) {
        SelectCase c;
        c.rows = 1;
        c.cols = 200000;
        c.idType = IdType::Int32;
        c.keyType = type;
        expectSelects(c, {1, 100, 2048});
    }
}

/// Equal keys fall to the lower column, whatever its given id.
TEST_F(SelectIds, GivenIdsInAnyOrder) {
    for (IdType idType : {IdType::Int32, IdType::Int64}) {
        for (Values values :
             {Values::Random,
              Values::FewDistinct,
              Values::AllEqual,
              Values::SignedZeros,
              Values::SomeNan,
              Values::AllNan}) {
            for (bool largest : {false, true}) {
                SelectCase c;
                c.rows = 3;
                c.cols = 5003;
                c.values = values;
                c.idType = idType;
                c.givenIds = true;
                c.largest = largest;
                c.padding = 5;
                expectSelects(c, {1, 2, 33, 129, 257, 1025, 2048});
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(SelectIds, GivenIdsOfSplitRows) {
    for (Values values : {Values::FewDistinct, Values::AllEqual}) {
        for (DataType type : kKeyTypes) {
            SelectCase c;
            c.rows = 2;
            c.cols = 150000;
            c.values = values;
            c.keyType = type;
            c.givenIds = true;
            expectSelects(c, {1, 100, 2048});
        }
    }
}

TEST_F(SelectIds, GivenIdsOfShortRows) {
    for (int64_t cols : {1, 2, 31, 100, 1025}) {
        SelectCase c;
        c.rows = 70;
        c.cols = cols;
        c.values = Values::FewDistinct;
        c.givenIds = true;
        expectSelects(c, {1, 32, 1000, 2048});
    }
}

/// Plans without pointers, and runs what was planned.
struct PlannedSelect {
    static SelectPlan plan(SelectProblem p) {
        p.idsGiven = p.ids;
        p.colBiasGiven = p.colBias;
        p.rowBiasGiven = p.rowBias;
        p.keys = p.ids = p.outKeys = p.outIds = nullptr;
        p.colBias = p.rowBias = nullptr;
        return planSelection(p);
    }
    static size_t workspaceBytes(const SelectProblem& problem) {
        return plan(problem).workspaceBytes();
    }
    static void run(
            const SelectProblem& problem,
            Workspace workspace,
            cudaStream_t stream) {
        runSelect(plan(problem), problem, workspace, stream);
    }
};

class SelectPlanned : public GpuTest {};

TEST_F(SelectPlanned, MatchOracle) {
    for (SelectAlgorithm algorithm :
         {SelectAlgorithm::Auto,
          SelectAlgorithm::Bits,
          SelectAlgorithm::SampleThreshold,
          SelectAlgorithm::BitsGlobal,
          SelectAlgorithm::SampleSelect,
          SelectAlgorithm::SampleSelectTwoStage,
          SelectAlgorithm::RadixSelect,
          SelectAlgorithm::Sort}) {
        for (bool bias : {false, true}) {
            SelectCase c;
            c.rows = 3;
            c.cols = 50000;
            c.algorithm = algorithm;
            c.bias = bias;
            c.givenIds = !bias;
            SelectData data(c);
            data.rank(50001);
            for (int k : {1, 100, 2048, 3000, 50001}) {
                if (algorithm == SelectAlgorithm::Bits && k > 2048) {
                    continue;
                }
                ASSERT_TRUE(data.check(
                        k, data.run(k, nullptr, 0xFF, PlannedSelect())));
            }
        }
    }
}

class SelectBias : public GpuTest,
                   public ::testing::WithParamInterface<Values> {};

/// Sums tie after rounding and after the clamp at zero; ties go to the lower
/// column. NaN stays NaN.
TEST_P(SelectBias, MatchOracle) {
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{3, 5001},
          {1, 200000},
          {64, 20000},
          {700, 100}}) {
        for (size_t shift : {0, 1}) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.values = GetParam();
            c.bias = true;
            c.padding = shift ? 3 : 0;
            c.shift = shift;
            expectSelects(c, {1, 10, 129, 1025, 2048});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Some,
        SelectBias,
        ::testing::Values(
                Values::Random,
                Values::Ascending,
                Values::Descending,
                Values::AllEqual,
                Values::FewDistinct,
                Values::HalfInfinite,
                Values::BothInfinities,
                Values::SomeNan,
                Values::AllNan),
        [](const auto& info) { return nameOf(info.param); });

} // namespace
} // namespace faiss_bits::test
