/// Names, refusals, choice and scratch of the algorithms of runSelect. None
/// makes a CUDA call: the devices are hidden before the first one.

#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "tests/common/ExpectError.h"
#include "tests/select/AlgorithmHarness.h"

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

    /// All three calls say the same of a forced algorithm.
    static void expectRefusal(const SelectProblem& p, const char* reason) {
        const std::string name = nameOf(p.algorithm);
        EXPECT_TRUE(
                throwsNaming([&] { selectWorkspaceBytes(p); }, name, reason));
        EXPECT_TRUE(throwsNaming([&] { chosenAlgorithm(p); }, name, reason));
        EXPECT_TRUE(throwsNaming(
                [&] {
                    runSelect(p, {nowhere(), size_t(1) << 50}, nullptr);
                },
                name,
                reason));
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
    EXPECT_EQ(names.size(), 13u) << "Auto and every one of the header";
}

TEST_F(SelectAlgorithmNames, UnknownOnesAreNamed) {
    for (const char* name : {"quickselect", "Bits", "", " bits"}) {
        EXPECT_TRUE(throwsNaming(
                [&] { (void)selectAlgorithmOf(name); }, "bits", name));
    }
    const auto none = static_cast<SelectAlgorithm>(99);
    EXPECT_STREQ(nameOf(none), "?");
    EXPECT_TRUE(throwsNaming(
            [&] { selectWorkspaceBytes(problemOf(none)); }, "algorithm", "99"));
}

TEST_F(SelectAlgorithmNames, RefusalsNameTheAlgorithmAndTheReason) {
    for (SelectAlgorithm algorithm : selectAlgorithms()) {
        SelectProblem p = problemOf(algorithm);
        EXPECT_EQ(refusalOf(p), "");
        p.k = kMaxSelectK;
        EXPECT_EQ(refusalOf(p), "");
        p.k = kMaxSelectK + 1;
        if (takesAnyK(algorithm)) {
            EXPECT_EQ(refusalOf(p), "");
        } else {
            expectRefusal(p, "k = 2049");
        }
        p.k = 100;
        p.ids = nowhere();
        if (!refusalOf(p).empty()) {
            EXPECT_TRUE(mayRefuse(p)) << nameOf(algorithm);
            expectRefusal(p, "ids");
        }
        p.ids = nullptr;
        p.colBias = static_cast<float*>(nowhere());
        if (!refusalOf(p).empty()) {
            EXPECT_TRUE(mayRefuse(p)) << nameOf(algorithm);
            expectRefusal(p, "bias"); // or colBias
        }
    }
}

/// Only ids, biases and k may be refused, never a type or a direction.
TEST_F(SelectAlgorithmNames, EveryTypeAndDirectionIsTaken) {
    for (SelectAlgorithm algorithm : selectAlgorithms()) {
        SelectProblem p = problemOf(algorithm);
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            for (int bits = 0; bits < 8; ++bits) {
                p.keyType = type;
                p.largest = bits & 1;
                p.sorted = bits & 2;
                p.idType = bits & 4 ? IdType::Int32 : IdType::Int64;
                EXPECT_EQ(refusalOf(p), "") << nameOf(type) << " " << bits;
                EXPECT_EQ(chosenAlgorithm(p), algorithm);
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

/// A forced algorithm needs no more than a few copies of keys, ids and result.
TEST_F(SelectAlgorithmNames, ScratchIsBounded) {
    const std::pair<int64_t, int64_t> shapes[] = {
            {1, 100}, {1, kMaxSelectCols}, {1024, 1 << 20}, {100000, 100}};
    for (SelectAlgorithm algorithm : selectAlgorithms()) {
        for (auto [rows, cols] : shapes) {
            for (int k : {1, 2048, 65536}) {
                SelectProblem p = problemOf(algorithm);
                p.rows = rows;
                p.cols = cols;
                p.k = k;
                if (k > kMaxSelectK && !takesAnyK(algorithm)) {
                    continue;
                }
                const double bound =
                        64.0 * double(rows) * double(cols + k) + (64 << 20);
                EXPECT_LT(double(selectWorkspaceBytes(p)), bound)
                        << nameOf(algorithm) << " " << rows << " x " << cols
                        << " k=" << k;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
