/// Plans that are made before any pointer is known. None makes a CUDA call: the
/// devices are hidden before the first one.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "kernels/select/SelectShapeKey.h"
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

/// What is to be seen of a plan: what it says, its scratch, and what a run of
/// the problem that it was made for is refused for, as nothing is at its
/// pointers; or what the plan is refused for.
std::string seenOf(const SelectProblem& p) {
    std::string seen;
    try {
        const SelectPlan plan = planSelection(p);
        seen = plan.toString() +
                ", bytes = " + std::to_string(plan.workspaceBytes());
        runSelect(plan, p, {}, nullptr);
    } catch (const Error& error) {
        seen += std::string(", ") + error.what();
    }
    return seen;
}

/// By a thread that remembers none.
std::string freshlySeenOf(const SelectProblem& p) {
    std::string seen;
    std::thread([&] { seen = seenOf(p); }).join();
    return seen;
}

/// A thread remembers plans: none of them may serve another shape.
TEST_F(SelectPlans, AreThoseOfTheirShape) {
    using Change = std::function<void(SelectProblem&)>;
    const std::vector<Change> changes = {
            [](auto& p) { p.rows += 1; },
            [](auto& p) { p.rows = 0; },
            [](auto& p) { p.cols += 4097; },
            [](auto& p) { p.k += 1; },
            [](auto& p) { p.keyType = DataType::BFloat16; },
            [](auto& p) { p.largest = true; },
            [](auto& p) { p.sorted = false; },
            [](auto& p) { p.sorted = false, p.dropNan = true; },
            [](auto& p) { p.rowStride = p.cols + 1; },
            [](auto& p) { p.rowStride = p.cols - 1; },
            [](auto& p) { p.idsGiven = true; },
            [](auto& p) { p.idsGiven = true, p.idStride = p.cols + 1; },
            [](auto& p) { p.idsGiven = true, p.idStride = p.cols - 1; },
            [](auto& p) { p.idsGiven = p.sharedIds = true; },
            [](auto& p) { p.idType = IdType::Int32; },
            [](auto& p) { p.idOffset = idx_t(1) << 40; },
            [](auto& p) { p.outStride = p.k + 1; },
            [](auto& p) { p.colBiasGiven = true; },
            [](auto& p) { p.colBiasGiven = p.rowBiasGiven = true; },
            [](auto& p) { p.colBiasGiven = true, p.clampAtZero = false; },
            [](auto& p) {
                p.colBiasGiven = p.negated = true;
                p.clampAtZero = false;
            },
            [](auto& p) { p.algorithm = SelectAlgorithm::RadixSelect; },
            [](auto& p) { p.device.multiprocessors = 7; },
            [](auto& p) { p.device.blockSharedBytes = 99 * 1024; },
            [](auto& p) { p.device.sharedBytes = 99 * 1024; },
            [](auto& p) { p.device.computeCapability = 80; }};
    std::vector<SelectProblem> problems;
    for (const SelectProblem& shape : shapes()) {
        problems.push_back(shape);
        for (const Change& change : changes) {
            problems.push_back(shape);
            change(problems.back());
        }
    }
    const auto expectFresh = [](const SelectProblem& p) {
        const std::string fresh = freshlySeenOf(p);
        // Twice: the second is remembered.
        EXPECT_EQ(seenOf(p), fresh);
        EXPECT_EQ(seenOf(p), fresh);
    };
    // With what it differs from among the last few, then in any order.
    for (size_t i = 0; i < problems.size(); ++i) {
        const SelectProblem& shape = shapes()[i / (1 + changes.size())];
        expectFresh(shape);
        expectFresh(problems[i]);
        expectFresh(shape);
    }
    std::mt19937 random(5);
    for (int turn = 0; turn < 3 && !HasFailure(); ++turn) {
        std::shuffle(problems.begin(), problems.end(), random);
        std::for_each(problems.begin(), problems.end(), expectFresh);
    }
}

/// Members that no plan depends on today are told apart, too: what plans depend
/// on may change.
TEST_F(SelectPlans, AreKeptByEveryMember) {
    const SelectProblem shape = shapeOf(4, 70000, 100);
    const auto differs = [&](auto change) {
        SelectProblem p = shape;
        change(p);
        return shapeKey(p) != shapeKey(shape);
    };
    EXPECT_TRUE(differs([](auto& p) { p.rows = 5; }));
    EXPECT_TRUE(differs([](auto& p) { p.cols = 70001; }));
    EXPECT_TRUE(differs([](auto& p) { p.k = 101; }));
    EXPECT_TRUE(differs([](auto& p) { p.keyType = DataType::Float16; }));
    EXPECT_TRUE(differs([](auto& p) { p.largest = true; }));
    EXPECT_TRUE(differs([](auto& p) { p.sorted = false; }));
    EXPECT_TRUE(differs([](auto& p) { p.dropNan = true; }));
    EXPECT_TRUE(differs([](auto& p) { p.algorithm = SelectAlgorithm::Sort; }));
    EXPECT_TRUE(differs([](auto& p) { p.rowStride = 70000; }));
    EXPECT_TRUE(differs([](auto& p) { p.idStride = 70000; }));
    EXPECT_TRUE(differs([](auto& p) { p.sharedIds = true; }));
    EXPECT_TRUE(differs([](auto& p) { p.idOffset = 1; }));
    EXPECT_TRUE(differs([](auto& p) { p.idType = IdType::Int32; }));
    EXPECT_TRUE(differs([](auto& p) { p.clampAtZero = false; }));
    EXPECT_TRUE(differs([](auto& p) { p.negated = true; }));
    EXPECT_TRUE(differs([](auto& p) { p.outStride = 100; }));
    EXPECT_TRUE(differs([](auto& p) { p.device.computeCapability = 80; }));
    EXPECT_TRUE(differs([](auto& p) { p.device.multiprocessors = 7; }));
    EXPECT_TRUE(differs([](auto& p) { p.device.sharedBytes = 1; }));
    EXPECT_TRUE(differs([](auto& p) { p.device.blockSharedBytes = 1; }));
    EXPECT_TRUE(differs([](auto& p) { p.device.singleToDouble = 32; }));
    // Pointers count as set or promised, wherever they lead.
    EXPECT_TRUE(differs([](auto& p) { p.ids = nowhere(); }));
    EXPECT_TRUE(differs([](auto& p) { p.idsGiven = true; }));
    EXPECT_TRUE(differs([](auto& p) { p.colBias = nowhere<float>(); }));
    EXPECT_TRUE(differs([](auto& p) { p.colBiasGiven = true; }));
    EXPECT_TRUE(differs([](auto& p) { p.rowBias = nowhere<float>(); }));
    EXPECT_TRUE(differs([](auto& p) { p.rowBiasGiven = true; }));
    EXPECT_FALSE(differs([](auto& p) { p.keys = nowhere(); }));
    EXPECT_FALSE(differs([](auto& p) { p.outKeys = p.outIds = nowhere(); }));
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

/// A sort of rows that are wanted whole and in no order says that it is none.
TEST_F(SelectPlans, OfWholeRows) {
    const auto saysAsItIs = [](idx_t cols, int k, bool sorted) {
        SelectProblem p = shapeOf(4, cols, k);
        p.algorithm = SelectAlgorithm::Sort;
        p.sorted = sorted;
        return planSelection(p).toString().find("every column as it is") !=
                std::string::npos;
    };
    for (int cols : {5000, 100000}) {
        EXPECT_TRUE(saysAsItIs(cols, cols, false));
        EXPECT_FALSE(saysAsItIs(cols, cols, true));
        EXPECT_FALSE(saysAsItIs(cols, cols - 1, false));
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
