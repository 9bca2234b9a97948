/// What the kernels' calls refuse, before any CUDA call; no device is needed.

#include <gtest/gtest.h>

#include "kernels/cluster/ClusterCentroids.h"
#include "kernels/cluster/ClusterSums.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

ClusterSumsProblem fine() {
    static float floats[16];
    static int64_t labels[4];
    static double doubles[16];
    static uint64_t counts[4];
    ClusterSumsProblem problem;
    problem.n = 4;
    problem.d = 4;
    problem.k = 4;
    problem.vectors = floats;
    problem.labels = labels;
    problem.distances = floats;
    problem.outSums = doubles;
    problem.outWeights = doubles;
    problem.outCounts = counts;
    problem.outObjective = doubles;
    return problem;
}

template <class Change>
::testing::AssertionResult refuses(
        Change change,
        const char* name,
        const char* value = "") {
    ClusterSumsProblem problem = fine();
    change(problem);
    return throwsNaming(
            [&] { runClusterSums(problem, {}, nullptr); }, name, value);
}

TEST(ClusterArguments, SumsRefuseShapes) {
    EXPECT_TRUE(refuses([](auto& p) { p.n = -1; }, "n", "-1"));
    EXPECT_TRUE(refuses([](auto& p) { p.n = kMaxClusterRows + 1; }, "n"));
    EXPECT_TRUE(refuses([](auto& p) { p.d = 0; }, "d", "0"));
    EXPECT_TRUE(refuses([](auto& p) { p.k = 0; }, "k", "0"));
    EXPECT_TRUE(refuses([](auto& p) { p.k = int64_t(1) << 31; }, "k"));
    EXPECT_TRUE(refuses(
            [](auto& p) { p.labelType = IdType(7); }, "labelType", "7"));
}

TEST(ClusterArguments, SumsRefusePointers) {
    EXPECT_TRUE(refuses([](auto& p) { p.vectors = nullptr; }, "vectors"));
    EXPECT_TRUE(refuses([](auto& p) { p.labels = nullptr; }, "labels"));
    EXPECT_TRUE(refuses([](auto& p) { p.outSums = nullptr; }, "outSums"));
    EXPECT_TRUE(refuses([](auto& p) { p.outWeights = nullptr; }, "outWeights"));
    EXPECT_TRUE(refuses([](auto& p) { p.outCounts = nullptr; }, "outCounts"));
    EXPECT_TRUE(
            refuses([](auto& p) { p.outObjective = nullptr; }, "outObjective"));
    // No scratch.
    EXPECT_TRUE(refuses([](auto&) {}, "workspace.bytes"));
}

TEST(ClusterArguments, SizesNeedNoPointers) {
    ClusterSumsProblem problem;
    problem.n = 1 << 20;
    problem.d = 128;
    problem.k = 4096;
    const size_t bytes = clusterSumsWorkspaceBytes(problem);
    // Two entries a row, and two sums for 128 rows.
    const size_t least = size_t(16) * problem.n + problem.n / 128 * 2 * 128 * 8;
    EXPECT_GE(bytes, least);
    EXPECT_LE(bytes, least + least / 8);
    problem.n = 0;
    EXPECT_LT(clusterSumsWorkspaceBytes(problem), size_t(1) << 20);
}

TEST(ClusterArguments, BlocksDependOnTheDimensionAlone) {
    EXPECT_EQ(clusterBlockRows(128), 1 << 20);
    EXPECT_EQ(clusterBlockRows(32), kMaxClusterRows);
    EXPECT_EQ(clusterBlockRows(1), kMaxClusterRows);
    EXPECT_EQ(clusterBlockRows(1 << 28), 1);
}

TEST(ClusterArguments, CentroidsRefuse) {
    float x[4] = {};
    double w[4] = {};
    const auto means = [&](const double* sums,
                           const double* weights,
                           int64_t first,
                           int64_t k,
                           int d,
                           float* out) {
        runClusterMeans(sums, weights, first, k, d, out, nullptr);
    };
    EXPECT_TRUE(throwsNaming([&] { means(nullptr, w, 0, 2, 2, x); }, "sums"));
    EXPECT_TRUE(
            throwsNaming([&] { means(w, nullptr, 0, 2, 2, x); }, "weights"));
    EXPECT_TRUE(throwsNaming([&] { means(w, w, 3, 2, 2, x); }, "first", "3"));
    EXPECT_TRUE(throwsNaming([&] { means(w, w, 0, 0, 2, x); }, "k", "0"));
    EXPECT_TRUE(throwsNaming([&] { means(w, w, 0, 2, 0, x); }, "d", "0"));
    EXPECT_TRUE(
            throwsNaming([&] { means(w, w, 0, 2, 2, nullptr); }, "centroids"));
    EXPECT_TRUE(throwsNaming(
            [&] { runClusterSplits(nullptr, 1, 2, x, nullptr); }, "splits"));
    EXPECT_TRUE(throwsNaming(
            [&] { runClusterSplits(nullptr, -1, 2, x, nullptr); },
            "numSplits",
            "-1"));
    EXPECT_TRUE(throwsNaming(
            [&] { runFinishCentroids(0, 2, true, true, x, nullptr); }, "k"));
    EXPECT_TRUE(throwsNaming(
            [&] { runFindNotFinite(nullptr, 1, nullptr, nullptr); }, "values"));
    EXPECT_TRUE(throwsNaming(
            [&] { runFindNotFinite(x, 1, nullptr, nullptr); }, "outCount"));
}

} // namespace
} // namespace faiss_bits::test
