/// Plans that are made before any pointer is known. None makes a CUDA call: the
/// devices are hidden before the first one.

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

class SelectPlans : public ::testing::Test {
   protected:
    static void SetUpTestSuite() {
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
    }

    template <class T = void>
    static T* nowhere() {
        return reinterpret_cast<T*>(uintptr_t(1) << 20);
    }

    static SelectProblem shapeOf(idx_t rows, idx_t cols, int k) {
        SelectProblem p;
        p.rows = rows;
        p.cols = cols;
        p.k = k;
        return p;
    }

    static const std::vector<SelectProblem>& shapes() {
        static const std::vector<SelectProblem> all = {
                shapeOf(1, 100, 10),
                shapeOf(3, 1 << 22, 100),
                shapeOf(4000, 70000, 2048),
                shapeOf(20, 1 << 20, 50000),
                shapeOf(5, 300, 300),
                shapeOf(5, 30000, 40000)};
        return all;
    }
};

TEST_F(SelectPlans, NeedNoPointers) {
    for (SelectAlgorithm algorithm : selectAlgorithms()) {
        for (SelectProblem p : shapes()) {
            p.algorithm = algorithm;
            for (bool isBiased : {false, true}) {
                SelectProblem given = p;
                given.keys = nowhere();
                given.outKeys = given.outIds = nowhere();
                p.colBiasGiven = p.rowBiasGiven = isBiased;
                given.colBias = given.rowBias =
                        isBiased ? nowhere<float>() : nullptr;
                SelectPlan plan;
                try {
                    plan = planSelection(p);
                } catch (const Error&) {
                    EXPECT_THROW(planSelection(given), Error);
                    continue; // refused, with pointers and without
                }
                EXPECT_EQ(plan.algorithm(), algorithm);
                EXPECT_EQ(plan.workspaceBytes(), selectWorkspaceBytes(given));
                EXPECT_EQ(plan.toString(), planSelection(given).toString());
            }
        }
    }
}

/// A thread remembers plans: none of them may serve another shape. A new thread
/// has none to remember.
TEST_F(SelectPlans, AreThoseOfTheirShape) {
    std::vector<SelectProblem> problems;
    for (const SelectProblem& shape : shapes()) {
        problems.push_back(shape);
        const auto add = [&](auto change) {
            SelectProblem p = shape;
            change(p);
            problems.push_back(p);
        };
        add([](auto& p) { p.rows += 1; });
        add([](auto& p) { p.rows = 0; });
        add([](auto& p) { p.cols += 4097; });
        add([](auto& p) { p.k += 1; });
        add([](auto& p) { p.keyType = DataType::BFloat16; });
        add([](auto& p) { p.sorted = false; });
        add([](auto& p) { p.colBiasGiven = true; });
        add([](auto& p) { p.algorithm = SelectAlgorithm::RadixSelect; });
        add([](auto& p) { p.device.multiprocessors = 7; });
        add([](auto& p) { p.device.blockSharedBytes = 99 * 1024; });
        add([](auto& p) { p.device.computeCapability = 80; });
    }
    std::mt19937 random(5);
    for (int turn = 0; turn < 3; ++turn) {
        std::shuffle(problems.begin(), problems.end(), random);
        for (const SelectProblem& p : problems) {
            std::string fresh;
            size_t freshBytes = 0;
            std::thread([&] {
                const SelectPlan plan = planSelection(p);
                fresh = plan.toString();
                freshBytes = plan.workspaceBytes();
            }).join();
            // Twice: the second is remembered.
            for (int i = 0; i < 2; ++i) {
                const SelectPlan plan = planSelection(p);
                ASSERT_EQ(plan.toString(), fresh);
                ASSERT_EQ(plan.workspaceBytes(), freshBytes);
            }
        }
    }
}

TEST_F(SelectPlans, ThatWereRefusedAreRefusedAgain) {
    SelectProblem p = shapeOf(3, 5000, 100);
    EXPECT_NO_THROW(planSelection(p));
    p.rowStride = 4999;
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(
                throwsNaming([&] { planSelection(p); }, "rowStride", "4999"));
    }
    p.rowStride = 5001;
    EXPECT_NO_THROW(planSelection(p));
    p.k = 0;
    EXPECT_TRUE(throwsNaming([&] { planSelection(p); }, "k", "0"));
}

TEST_F(SelectPlans, SayWhatTheyAre) {
    for (SelectProblem p : shapes()) {
        const SelectPlan plan = planSelection(p);
        EXPECT_EQ(plan.algorithm(), chosenAlgorithm(p));
        EXPECT_EQ(
                plan.toString().find(
                        std::string(nameOf(plan.algorithm())) + ": "),
                0u)
                << plan.toString();
        EXPECT_GT(plan.toString().size(), 20u);
    }
    const SelectPlan none = planSelection(shapeOf(0, 100, 10));
    EXPECT_NE(none.toString().find("no rows"), std::string::npos);
    EXPECT_EQ(none.workspaceBytes(), 0u);
}

/// By the tuning table.
TEST_F(SelectPlans, OfShortRows) {
    const auto isShort = [](idx_t rows, idx_t cols, int k) {
        SelectProblem p = shapeOf(rows, cols, k);
        p.device.computeCapability = 90;
        for (DataType type : {DataType::Float32, DataType::Float16}) {
            p.keyType = type;
            if (chosenAlgorithm(p) != SelectAlgorithm::ShortRows) {
                return false;
            }
        }
        return true;
    };
    EXPECT_TRUE(isShort(1000000, 100, 1));
    EXPECT_TRUE(isShort(131072, 100, 100));
    EXPECT_TRUE(isShort(100000, 1000, 10));
    EXPECT_TRUE(isShort(100000, 1000, 500));
    EXPECT_TRUE(isShort(16384, 2048, 32));
    EXPECT_TRUE(isShort(1, 30, 10));
    EXPECT_TRUE(isShort(1, 1000, 10));
    EXPECT_FALSE(isShort(16384, 2048, 1000));
    EXPECT_FALSE(isShort(1, 1000, 1000));
    EXPECT_FALSE(isShort(64, 1 << 20, 10));
}

/// Where a block has room for the row and most of it is wanted, it is sorted.
TEST_F(SelectPlans, OfRowsThatAreSorted) {
    const auto chosen = [](idx_t rows, idx_t cols, int k, DataType type) {
        SelectProblem p = shapeOf(rows, cols, k);
        p.keyType = type;
        return planSelection(p);
    };
    for (idx_t rows : {100, 1000, 10000}) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            for (idx_t cols : {5000, 10000, 30000}) {
                const SelectPlan plan =
                        chosen(rows, cols, int(cols) * 3 / 4, type);
                EXPECT_EQ(plan.algorithm(), SelectAlgorithm::Sort);
                EXPECT_EQ(plan.workspaceBytes(), 0u);
            }
        }
        for (idx_t cols : {5000, 10000}) {
            const SelectPlan plan =
                    chosen(rows, cols, int(cols) * 3 / 4, DataType::Float32);
            EXPECT_EQ(plan.algorithm(), SelectAlgorithm::Sort);
            EXPECT_EQ(plan.workspaceBytes(), 0u);
        }
    }
}

TEST_F(SelectPlans, RefuseAnotherShape) {
    SelectProblem p = shapeOf(4, 70000, 100);
    const SelectPlan plan = planSelection(p);
    const auto expectNamed = [&](const SelectProblem& other, const char* name) {
        EXPECT_TRUE(throwsNaming(
                [&] { runSelect(plan, other, {}, nullptr); }, name));
    };
    expectNamed(shapeOf(5, 70000, 100), "rows");
    expectNamed(shapeOf(4, 70001, 100), "cols");
    expectNamed(shapeOf(4, 70000, 101), "k");
    SelectProblem other = p;
    other.keyType = DataType::Float16;
    expectNamed(other, "keyType");
    other = p;
    other.sorted = false;
    expectNamed(other, "sorted");
    other = p;
    other.colBias = nowhere<float>();
    expectNamed(other, "hasColBias");
    other = p;
    other.ids = nowhere();
    expectNamed(other, "hasIds");
}

TEST_F(SelectPlans, PromisedPointersMustBeSet) {
    SelectProblem p = shapeOf(4, 70000, 100);
    p.keys = p.outKeys = p.outIds = nowhere();
    for (bool SelectProblem::*flag :
         {&SelectProblem::idsGiven,
          &SelectProblem::colBiasGiven,
          &SelectProblem::rowBiasGiven}) {
        SelectProblem promised = p;
        promised.*flag = true;
        EXPECT_TRUE(throwsNaming(
                [&] {
                    runSelect(planSelection(promised), promised, {}, nullptr);
                },
                "nullptr",
                "Given"));
    }
}

} // namespace
} // namespace faiss_bits::test
