/// Names of the papers' methods. No call makes a CUDA call.

#include <cctype>
#include <set>

#include <gtest/gtest.h>

#include "research/queues/ResearchSelect.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

TEST(ResearchNames, AreDistinct) {
    std::set<std::string> names;
    for (ResearchAlgorithm algorithm : researchAlgorithms()) {
        const std::string name = nameOf(algorithm);
        EXPECT_TRUE(names.insert(name).second) << name << " stands twice";
        for (char c : name) {
            EXPECT_TRUE(std::islower(c) || c == '_') << name;
        }
    }
    EXPECT_EQ(names.size(), 5u) << "every one of the header";
}

/// runSelect does not know them: the library has none of their code.
TEST(ResearchNames, AreUnknownToRunSelect) {
    for (ResearchAlgorithm algorithm : researchAlgorithms()) {
        const std::string name = nameOf(algorithm);
        EXPECT_TRUE(throwsNaming(
                [&] { (void)selectAlgorithmOf(name); },
                "algorithm",
                "'" + name + "' is none of auto, short_rows"));
    }
}

TEST(ResearchNames, UnknownNumbersAreNamed) {
    const auto none = static_cast<ResearchAlgorithm>(99);
    EXPECT_STREQ(nameOf(none), "?");
    SelectProblem p;
    p.rows = p.cols = p.k = 1;
    EXPECT_TRUE(throwsNaming(
            [&] { researchSelectWorkspaceBytes(none, p); }, "algorithm", "99"));
    EXPECT_TRUE(throwsNaming(
            [&] { runResearchSelect(none, p, {}, nullptr); },
            "algorithm",
            "99"));
}

} // namespace
} // namespace faiss_bits::test
