/// How searches of more vectors than 2^31 are cut into parts, without a device.

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/FlatKnnSummary.h"
#include "kernels/many/MergeLists.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

constexpr idx_t kTwoTo31 = idx_t(1) << 31;
constexpr idx_t kMost = kMaxMergeLists * (kTwoTo31 - 32);

FlatKnnProblem problemOf(idx_t n, idx_t q, int k, int d = 2) {
    FlatKnnProblem p;
    p.numVectors = n;
    p.numQueries = q;
    p.k = k;
    p.d = d;
    p.dataType = DataType::Float16;
    return p;
}

/// Addresses that nothing lies at.
template <class T = void>
const T* at(uintptr_t address) {
    return reinterpret_cast<const T*>(address);
}

TEST(PartsPlan, BothSidesOfOnePart) {
    for (idx_t n : {idx_t(1), kTwoTo31 - 32, kTwoTo31 - 31, kTwoTo31 - 1}) {
        EXPECT_FALSE(needsParts(problemOf(n, 1, 1))) << n;
        EXPECT_FALSE(planFlatKnn(problemOf(n, 1, 1), SIZE_MAX).parts) << n;
    }
    for (idx_t n : {kTwoTo31, kTwoTo31 + 1, 3 * kTwoTo31, kMost}) {
        EXPECT_TRUE(needsParts(problemOf(n, 1, 1))) << n;
        EXPECT_TRUE(planFlatKnn(problemOf(n, 1, 1), SIZE_MAX).parts) << n;
    }
    FlatKnnProblem small = problemOf(320, 1, 1);
    small.partVectors = 320;
    EXPECT_FALSE(needsParts(small));
    small.partVectors = 288;
    EXPECT_TRUE(needsParts(small));
}

/// Every vector is in one part, at its own address, with its own bit and norm.
TEST(PartsPlan, PartsCoverAllVectors) {
    for (idx_t n :
         {kTwoTo31,
          kTwoTo31 + 1,
          kTwoTo31 + 1000,
          2 * (kTwoTo31 - 32),
          2 * (kTwoTo31 - 32) + 1,
          (idx_t(1) << 32) + 12345,
          idx_t(5'000'000'007),
          kMost - 1,
          kMost}) {
        FlatKnnProblem p = problemOf(n, 7, 10, 3);
        p.vectors = at(uintptr_t(1) << 40);
        p.vectorNorms = at<float>(uintptr_t(1) << 41);
        p.vectorFacts = at<float>(uintptr_t(1) << 42);
        p.allowedBits = at<uint32_t>(uintptr_t(1) << 43);
        p.greatestNorm = at<float>(64);
        p.searchImage = at(64);
        p.queries = at(uintptr_t(1) << 44);
        p.exactQueries = at<float>(uintptr_t(1) << 45);
        p.limits = at<float>(uintptr_t(1) << 46);
        const PartsPlan plan = planParts(p, SIZE_MAX);
        SCOPED_TRACE(plan.toString());
        EXPECT_EQ(plan.parts, (n + kMostPartVectors - 1) / kMostPartVectors);
        idx_t covered = 0;
        for (int part = 0; part < plan.parts; ++part) {
            const FlatKnnProblem some = partOf(p, plan, part, 2, 5);
            ASSERT_EQ(covered % 32, 0);
            ASSERT_GT(some.numVectors, 0);
            ASSERT_LE(some.numVectors, kMostPartVectors);
            ASSERT_FALSE(needsParts(some));
            ASSERT_EQ(
                    uintptr_t(some.vectors),
                    (uintptr_t(1) << 40) + uintptr_t(covered) * 3 * 2);
            ASSERT_EQ(some.vectorNorms, p.vectorNorms + covered);
            ASSERT_EQ(some.vectorFacts, p.vectorFacts + covered);
            ASSERT_EQ(some.allowedBits, p.allowedBits + covered / 32);
            ASSERT_EQ(some.greatestNorm, p.greatestNorm);
            ASSERT_EQ(some.searchImage, nullptr);
            ASSERT_EQ(
                    uintptr_t(some.queries), (uintptr_t(1) << 44) + 2 * 3 * 2);
            ASSERT_EQ(some.exactQueries, p.exactQueries + 2 * 3);
            ASSERT_EQ(some.limits, p.limits + 2);
            ASSERT_EQ(some.numQueries, 5);
            ASSERT_EQ(some.batchQueries, 7);
            covered += some.numVectors;
        }
        EXPECT_EQ(covered, n);
    }
}

/// The size of the scratch and the run find the same plan.
TEST(PartsPlan, ScratchSuffices) {
    for (idx_t n : {kTwoTo31 + 1, idx_t(9'000'000'001)}) {
        for (idx_t q : {1, 17, 100000}) {
            for (int k : {1, 2048, 3000000}) {
                FlatKnnProblem p = problemOf(n, q, k);
                for (size_t most :
                     {size_t(0), size_t(32) << 20, size_t(1) << 30, SIZE_MAX}) {
                    const PartsPlan plan = planParts(p, most);
                    std::ostringstream text;
                    text << "n=" << n << " q=" << q << " k=" << k
                         << " most=" << most << ": " << plan.toString();
                    SCOPED_TRACE(text.str());
                    ASSERT_GE(plan.tileQueries, 1);
                    ASSERT_LE(plan.tileQueries, q);
                    ASSERT_LE(
                            plan.listBytes,
                            (size_t(256) << 20) + size_t(12) * plan.parts * k +
                                    1024);
                    const PartsPlan run = planParts(p, plan.bytes);
                    if (plan.bytes > most) {
                        // The least that works; with as much as that there may
                        // be a search of a part that takes less.
                        ASSERT_EQ(plan.tileQueries, 1);
                        ASSERT_EQ(plan.bytes, planParts(p, 0).bytes);
                        ASSERT_LE(run.bytes, plan.bytes);
                    } else {
                        ASSERT_EQ(run.bytes, plan.bytes);
                        ASSERT_EQ(run.tileQueries, plan.tileQueries);
                    }
                }
            }
        }
    }
}

/// A part's search goes by the limits, and by none where there are none.
TEST(PartsPlan, GivenLimitsServeEveryPart) {
    FlatKnnProblem p = problemOf(30000, 20, 10, 16);
    p.dataType = DataType::Float32;
    p.partVectors = 10016;
    for (bool isLimited : {false, true}) {
        p.limits = isLimited ? at<float>(64) : nullptr;
        p.numWithin = isLimited ? 10 : 0;
        const PartsPlan plan = planParts(p, SIZE_MAX);
        ASSERT_EQ(plan.parts, 3);
        for (int part = 0; part < plan.parts; ++part) {
            const FlatKnnPlan one =
                    planFlatKnn(partOf(p, plan, part, 0, 20), SIZE_MAX);
            EXPECT_EQ(one.fused && one.fused->givenLimits, isLimited)
                    << one.toString();
        }
    }
}

/// Columns of queries are as far apart as there are queries: all at a time.
TEST(PartsPlan, ColumnsOfQueriesStayTogether) {
    FlatKnnProblem p = problemOf(kTwoTo31 + 5, 100000, 1000, 3);
    EXPECT_LT(planParts(p, size_t(1) << 33).tileQueries, 100000);
    p.queriesRowMajor = false;
    EXPECT_EQ(planParts(p, size_t(1) << 33).tileQueries, 100000);
}

TEST(PartsPlan, NoQueries) {
    const FlatKnnPlan plan = planFlatKnn(problemOf(kTwoTo31, 0, 3), SIZE_MAX);
    EXPECT_EQ(plan.bytes, 0u);
    EXPECT_FALSE(plan.parts);
}

TEST(PartsPlan, WhatItSays) {
    const FlatKnnProblem p = problemOf(kTwoTo31 + 1000, 20, 10);
    const FlatKnnPlan plan = planFlatKnn(p, size_t(1) << 30);
    EXPECT_EQ(
            plan.toString().rfind(
                    "2 parts of 1073742336 vectors, 20 queries", 0),
            0u)
            << plan.toString();
    const FlatKnnSummary summary = summaryOf(plan, p, DeviceSpeed());
    EXPECT_EQ(summary.method, "parts");
    EXPECT_EQ(summary.tileQueries, 20);
    EXPECT_EQ(summary.tileVectors, 1073742336);
    // Two scans of 2^30 vectors, each of them read at 4.5 TB/s.
    EXPECT_GT(summary.microseconds, 1900);
}

TEST(PartsPlan, BadShapesAreNamed) {
    const auto expectNamed =
            [](FlatKnnProblem p, const char* name, const std::string& value) {
                EXPECT_TRUE(throwsNaming(
                        [&] { flatKnnWorkspaceBytes(p, 0); }, name, value));
            };
    FlatKnnProblem p = problemOf(kMost + 1, 1, 1);
    expectNamed(p, "numVectors", std::to_string(kMost + 1));
    p = problemOf(kTwoTo31, 1, 1);
    p.idType = IdType::Int32;
    expectNamed(p, "idType", "numVectors = 2147483648");
    p = problemOf(kTwoTo31, 1, 1, 2);
    p.vectorsRowMajor = false;
    expectNamed(p, "vectorsRowMajor", "2147483648");
    p = problemOf(kTwoTo31, -1, 1);
    expectNamed(p, "numQueries", "-1");
    p = problemOf(kTwoTo31, 1, 0);
    expectNamed(p, "k", "0");
    // As many results as are merged at a time, and one more of each part.
    p = problemOf(3 * (kTwoTo31 - 32), 1, 1431655765);
    EXPECT_EQ(planParts(p, SIZE_MAX).parts, 3);
    ++p.k;
    expectNamed(p, "k", "1431655766");
    p = problemOf(1000, 1, 1);
    for (idx_t bad : {idx_t(31), idx_t(-32), kTwoTo31}) {
        p.partVectors = bad;
        // Whether they are searched in parts or not.
        for (idx_t n : {idx_t(0), idx_t(31), idx_t(32), kTwoTo31 + 1}) {
            p.numVectors = n;
            expectNamed(p, "partVectors", std::to_string(bad));
        }
    }
}

} // namespace
} // namespace faiss_bits::test
