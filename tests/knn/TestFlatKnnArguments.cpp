/// Argument checks and the size query of kernels/knn, without a device: the
/// devices are hidden before the first CUDA call, pointers are addresses of
/// nothing, and there is no cuBLAS handle.

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/direct/DirectFew.h"
#include "kernels/select/Select.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

template <class T = void>
T* nowhere() {
    return reinterpret_cast<T*>(uintptr_t(1) << 20);
}

class FlatKnnArguments : public ::testing::Test {
   protected:
    static void SetUpTestSuite() {
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
    }

    FlatKnnArguments() {
        good.numVectors = 100000;
        good.numQueries = 100;
        good.d = 32;
        good.k = 10;
        good.device.singleToDouble = 32; // else few pairs need no handle
        good.vectors = nowhere();
        good.queries = nowhere();
        good.outDistances = nowhere<float>();
        good.outIds = nowhere();
    }

    void expectBadRun(
            const FlatKnnProblem& p,
            const char* name,
            const std::string& value = "") {
        EXPECT_TRUE(throwsNaming(
                [&] {
                    runFlatKnn(
                            p, {nowhere(), size_t(1) << 40}, nullptr, nullptr);
                },
                name,
                value));
    }

    void expectBadShape(
            const FlatKnnProblem& p,
            const char* name,
            const std::string& value) {
        EXPECT_TRUE(throwsNaming(
                [&] { flatKnnWorkspaceBytes(p, 0); }, name, value));
        expectBadRun(p, name, value);
    }

    FlatKnnProblem good;
};

TEST_F(FlatKnnArguments, SizeQueryNeedsNoDevice) {
    for (idx_t q : {1, 16, 17, 1000, 100000}) {
        for (int k : {1, 100, kMaxSelectK, kMaxSelectK + 1, 100000}) {
            FlatKnnProblem shape = good;
            shape.vectors = shape.queries = shape.outIds = nullptr;
            shape.outDistances = nullptr;
            shape.numQueries = q;
            shape.k = k;
            const size_t least = flatKnnWorkspaceBytes(shape, 0);
            EXPECT_GT(least, 0u);
            for (size_t most : {least, 2 * least, size_t(1) << 30}) {
                EXPECT_LE(
                        flatKnnWorkspaceBytes(shape, most),
                        std::max(least, most));
            }
            // Scratch does not grow with q times n.
            EXPECT_LT(least, size_t(64) << 20) << "q=" << q << " k=" << k;
        }
    }
}

TEST_F(FlatKnnArguments, NoQueriesDoNothing) {
    good.numQueries = 0;
    EXPECT_NO_THROW(runFlatKnn(good, {}, nullptr, nullptr));
}

TEST_F(FlatKnnArguments, BadK) {
    for (int k : {0, -5, INT32_MIN}) {
        good.k = k;
        expectBadShape(good, "k", std::to_string(k));
    }
}

TEST_F(FlatKnnArguments, BadD) {
    for (int d : {0, -1}) {
        good.d = d;
        expectBadShape(good, "d", std::to_string(d));
    }
}

TEST_F(FlatKnnArguments, BadNumbers) {
    for (idx_t n : {idx_t(-1), (idx_t(1) << 37) - 2047}) {
        FlatKnnProblem p = good;
        p.numVectors = n;
        expectBadShape(p, "numVectors", std::to_string(n));
    }
    good.numQueries = -2;
    expectBadShape(good, "numQueries", "-2");
    good.numQueries = 5;
    good.numWithin = -3;
    expectBadShape(good, "numWithin", "-3");
}

TEST_F(FlatKnnArguments, BadEnumerations) {
    FlatKnnProblem p = good;
    for (int metric : {10, 17, 255}) {
        p.metric = static_cast<Metric>(metric);
        expectBadShape(p, "metric", std::to_string(metric));
    }
    p = good;
    p.dataType = static_cast<DataType>(18);
    expectBadShape(p, "dataType", "18");
    p = good;
    p.idType = static_cast<IdType>(19);
    expectBadShape(p, "idType", "19");
}

TEST_F(FlatKnnArguments, EveryMetricHasAPlan) {
    for (int metric = 0; metric <= int(Metric::Jaccard); ++metric) {
        FlatKnnProblem p = good;
        p.metric = static_cast<Metric>(metric);
        p.metricArg = 3;
        for (idx_t q : {1, 16, 17, 1000}) {
            p.numQueries = q;
            const size_t least = flatKnnWorkspaceBytes(p, 0);
            EXPECT_GT(least, 0u) << metric;
            EXPECT_TRUE(throwsNaming(
                    [&] {
                        runFlatKnn(p, {nowhere(), least - 1}, nullptr, nullptr);
                    },
                    "workspace",
                    std::to_string(least - 1)));
            // Up to 16 queries meet no sample, whose products would need one.
            // Nor do limits from strips, which are for k up to 512.
            if (q > 16) {
                FlatKnnProblem sampled = p;
                sampled.k = 600;
                expectBadRun(sampled, "handle");
            }
        }
    }
}

TEST_F(FlatKnnArguments, BadMetricArg) {
    FlatKnnProblem p = good;
    p.metric = Metric::Lp;
    expectBadShape(p, "metricArg", "0");
    p.metricArg = -2.5f;
    expectBadShape(p, "metricArg", "-2.5");
    for (float arg : {NAN, INFINITY, -INFINITY}) {
        p.metricArg = arg;
        expectBadShape(p, "metricArg", std::isnan(arg) ? "nan" : "inf");
    }
    // Others have none, and do not read it.
    p.metric = Metric::L1;
    EXPECT_NO_THROW(flatKnnWorkspaceBytes(p, 0));
}

TEST_F(FlatKnnArguments, BadMultiprocessors) {
    good.device.multiprocessors = 0;
    expectBadShape(good, "multiprocessors", "0");
}

TEST_F(FlatKnnArguments, NullPointers) {
    FlatKnnProblem p = good;
    p.vectors = nullptr;
    expectBadRun(p, "vectors");
    p = good;
    p.queries = nullptr;
    expectBadRun(p, "queries");
    p = good;
    p.outDistances = nullptr;
    expectBadRun(p, "outDistances");
    p = good;
    p.outIds = nullptr;
    expectBadRun(p, "outIds");
    p = good;
    p.k = 600; // limits from strips, of a smaller k, need none
    expectBadRun(p, "handle");
}

TEST_F(FlatKnnArguments, WorkspaceTooSmall) {
    for (idx_t q : {1, 100}) {
        good.numQueries = q;
        const size_t least = flatKnnWorkspaceBytes(good, 0);
        for (size_t bytes : {size_t(0), least - 1}) {
            EXPECT_TRUE(throwsNaming(
                    [&] {
                        runFlatKnn(good, {nowhere(), bytes}, nullptr, nullptr);
                    },
                    "workspace",
                    std::to_string(bytes)));
        }
        EXPECT_TRUE(throwsNaming(
                [&] {
                    runFlatKnn(good, {nullptr, least}, nullptr, nullptr);
                },
                "workspace"));
    }
}

/// Of the launch itself: a plan never asks for more than it takes.
TEST_F(FlatKnnArguments, FinishesOfFewKeysTakeNoMore) {
    DirectFinishParams few;
    few.k = 10;
    few.direct.stride = 64;
    const auto expectBad =
            [](const DirectFinishParams& p, const char* name, idx_t value) {
                EXPECT_TRUE(throwsNaming(
                        [&] { launchDirectFew(p, 1, nullptr); },
                        name,
                        std::to_string(value)));
            };
    for (int bad : {0, -1, kMostFewK + 1, 2048}) {
        DirectFinishParams p = few;
        p.k = bad;
        expectBad(p, "k", bad);
    }
    for (idx_t bad : {idx_t(-64), kMostFewKeys + 1, idx_t(1) << 40}) {
        DirectFinishParams p = few;
        p.direct.stride = bad;
        expectBad(p, "stride", bad);
    }
}

} // namespace
} // namespace faiss_bits::test
