/// Names and choice of the algorithms of runSelect. No call
/// makes a CUDA call: the devices are hidden before the first one.

#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

class SelectAlgorithmNames : public ::testing::Test {
   protected:
    static void SetUpTestSuite() {
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
    }

    static void* nowhere() {
        return reinterpret_cast<void*>(uintptr_t(1) << 20);
    }

    static SelectProblem problemOf(SelectAlgorithm algorithm) {
        SelectProblem p;
        p.rows = 4;
        p.cols = 1000000;
        p.k = 100;
        p.algorithm = algorithm;
        p.keys = p.outKeys = p.outIds = nowhere();
        return p;
    }

    /// What the size query throws; empty if nothing.
    static std::string refusalOf(const SelectProblem& p) {
        try {
            (void)selectWorkspaceBytes(p);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
};

TEST_F(SelectAlgorithmNames, AreDistinctAndGoBothWays) {
    std::set<std::string> names = {nameOf(SelectAlgorithm::Auto)};
    EXPECT_EQ(names, std::set<std::string>{"auto"});
    EXPECT_EQ(selectAlgorithmOf("auto"), SelectAlgorithm::Auto);
    for (SelectAlgorithm algorithm : selectAlgorithms()) {
        const std::string name = nameOf(algorithm);
        EXPECT_TRUE(names.insert(name).second) << name << " stands twice";
        EXPECT_EQ(selectAlgorithmOf(name), algorithm);
        for (char c : name) {
            EXPECT_TRUE(std::islower(c) || c == '_') << name;
        }
    }
    EXPECT_EQ(names.size(), 9u) << "Auto and every one of the header";
}

TEST_F(SelectAlgorithmNames, UnknownOnesAreNamed) {
    // The last one is of research/queues, which the library does not have.
    for (const char* name :
         {"quickselect", "Bits", "", " bits", "merge_queue"}) {
        EXPECT_TRUE(throwsNaming(
                [&] { (void)selectAlgorithmOf(name); }, "bits", name));
    }
    const auto none = static_cast<SelectAlgorithm>(99);
    EXPECT_STREQ(nameOf(none), "?");
    EXPECT_TRUE(throwsNaming(
            [&] { selectWorkspaceBytes(problemOf(none)); }, "algorithm", "99"));
}

/// chosenAlgorithm says of a forced algorithm what the other calls say.
TEST_F(SelectAlgorithmNames, ChosenAlgorithmIsTheForcedOneOrAnError) {
    for (SelectAlgorithm algorithm : selectAlgorithms()) {
        SelectProblem p = problemOf(algorithm);
        if (algorithm == SelectAlgorithm::ShortRows) {
            p.cols = 1000;
        }
        EXPECT_EQ(chosenAlgorithm(p), algorithm);
        SelectProblem largeK = p;
        largeK.k = kMaxSelectK + 1;
        SelectProblem ids = p;
        ids.ids = nowhere();
        SelectProblem biased = p;
        biased.colBias = static_cast<float*>(nowhere());
        for (const SelectProblem& problem : {largeK, ids, biased}) {
            const std::string refusal = refusalOf(problem);
            if (refusal.empty()) {
                EXPECT_EQ(chosenAlgorithm(problem), algorithm);
            } else {
                EXPECT_TRUE(throwsNaming(
                        [&] { chosenAlgorithm(problem); },
                        nameOf(algorithm),
                        refusal));
            }
        }
    }
}

TEST_F(SelectAlgorithmNames, AutoTakesEveryShape) {
    const int64_t sizes[] = {
            0, 1, 100, 5000, 1 << 20, int64_t(1) << 27, kMaxSelectCols};
    for (int64_t rows : {1, 7, 1000, 100000}) {
        for (int64_t cols : sizes) {
            for (int k : {1, 10, 129, 2048, 2049, 100000, 1 << 24}) {
                SelectProblem p = problemOf(SelectAlgorithm::Auto);
                p.rows = rows;
                p.cols = cols;
                p.k = k;
                SCOPED_TRACE(
                        std::to_string(rows) + " x " + std::to_string(cols) +
                        " k=" + std::to_string(k));
                EXPECT_EQ(refusalOf(p), "");
                EXPECT_NE(chosenAlgorithm(p), SelectAlgorithm::Auto);
                p.ids = nowhere();
                EXPECT_EQ(refusalOf(p), "") << "given ids";
                p.ids = nullptr;
                p.colBias = static_cast<float*>(nowhere());
                EXPECT_EQ(refusalOf(p), "") << "biases";
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
