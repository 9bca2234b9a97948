/// The plan of a flat search that a thread remembers is the one that would be
/// made.

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/flat/FlatLastPlan.h"
#include "kernels/common/Error.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::planAlike;
using gpu::detail::planOrLastPlan;

constexpr size_t kScratch = size_t(448) << 20;

/// Memory that nobody reads.
alignas(16) float someNumbers[8] = {};
alignas(16) int32_t someWords[8] = {};

FlatKnnProblem someProblem() {
    FlatKnnProblem p;
    p.numVectors = 1024;
    p.numQueries = 10240;
    p.d = 128;
    p.k = 32;
    p.vectors = someNumbers;
    p.queries = someNumbers;
    p.vectorNorms = someNumbers;
    p.outDistances = someNumbers;
    p.outIds = someWords;
    return p;
}

void expectMade(const FlatKnnProblem& p, size_t maxBytes) {
    const FlatKnnPlan want = planFlatKnn(p, maxBytes);
    const FlatKnnPlan got = planOrLastPlan(p, maxBytes);
    EXPECT_EQ(got.toString(), want.toString());
    EXPECT_EQ(got.bytes, want.bytes);
    EXPECT_EQ(got.places, want.places);
    EXPECT_EQ(got.certified, want.certified);
    EXPECT_EQ(got.selections.size(), want.selections.size());
}

TEST(FlatLastPlan, ShapesThatFollowEachOther) {
    for (const int k : {1, 32, 2000, 32}) {
        for (const idx_t queries : {0, 1, 100, 10240}) {
            for (const idx_t vectors : {1024, 1 << 20}) {
                for (const size_t maxBytes :
                     {kScratch, kScratch, kScratch / 8}) {
                    FlatKnnProblem p = someProblem();
                    p.k = k;
                    p.numQueries = queries;
                    p.numVectors = vectors;
                    expectMade(p, maxBytes);
                    p.mode = SearchMode::Plain;
                    expectMade(p, maxBytes);
                    expectMade(p, maxBytes);
                }
            }
        }
    }
}

TEST(FlatLastPlan, AfterAnError) {
    const FlatKnnProblem p = someProblem();
    expectMade(p, kScratch);
    FlatKnnProblem bad = p;
    bad.k = 0;
    EXPECT_THROW(planOrLastPlan(bad, kScratch), Error);
    EXPECT_THROW(planOrLastPlan(bad, kScratch), Error);
    expectMade(p, kScratch);
}

TEST(FlatLastPlan, WhatPlansDependOn) {
    const FlatKnnProblem p = someProblem();
    FlatKnnProblem elsewhere = p;
    elsewhere.queries = someNumbers + 4; // 16 bytes on
    elsewhere.outDistances = someNumbers + 4;
    elsewhere.outIds = someWords + 4;
    EXPECT_TRUE(planAlike(p, elsewhere));

    unsigned long long count = 0;
    const std::vector<std::function<void(FlatKnnProblem&)>> changes = {
            [](FlatKnnProblem& q) { q.metric = Metric::InnerProduct; },
            [](FlatKnnProblem& q) { q.metricArg = 3; },
            [](FlatKnnProblem& q) { q.dataType = DataType::Float16; },
            [](FlatKnnProblem& q) { ++q.numVectors; },
            [](FlatKnnProblem& q) { q.partVectors = 32; },
            [](FlatKnnProblem& q) { ++q.numQueries; },
            [](FlatKnnProblem& q) { ++q.batchQueries; },
            [](FlatKnnProblem& q) { ++q.d; },
            [](FlatKnnProblem& q) { ++q.k; },
            [](FlatKnnProblem& q) { q.vectors = someNumbers + 1; },
            [](FlatKnnProblem& q) { q.vectorsRowMajor = false; },
            [](FlatKnnProblem& q) { q.queries = someNumbers + 1; },
            [](FlatKnnProblem& q) { q.queriesRowMajor = false; },
            [](FlatKnnProblem& q) { q.vectorNorms = nullptr; },
            [](FlatKnnProblem& q) { q.vectorFacts = someNumbers; },
            [](FlatKnnProblem& q) {
                q.allowedBits = reinterpret_cast<uint32_t*>(someWords);
            },
            [](FlatKnnProblem& q) { q.allowedIds = someWords; },
            [](FlatKnnProblem& q) { ++q.numAllowed; },
            [](FlatKnnProblem& q) { q.limits = someNumbers; },
            [](FlatKnnProblem& q) { ++q.numWithin; },
            [](FlatKnnProblem& q) { q.mode = SearchMode::Plain; },
            [](FlatKnnProblem& q) { q.exactQueries = someNumbers; },
            [](FlatKnnProblem& q) { q.greatestNorm = someNumbers; },
            [](FlatKnnProblem& q) { q.searchImage = someNumbers; },
            [](FlatKnnProblem& q) { q.imageInOrder = true; },
            [](FlatKnnProblem& q) { q.imageHasBytes = true; },
            [&](FlatKnnProblem& q) { q.numRepeated = &count; },
            [&](FlatKnnProblem& q) { q.numRescored = &count; },
            [](FlatKnnProblem& q) { q.outDistances = nullptr; },
            [](FlatKnnProblem& q) { q.outIds = nullptr; },
            [](FlatKnnProblem& q) { q.idType = IdType::Int32; },
            [](FlatKnnProblem& q) { --q.device.multiprocessors; },
            [](FlatKnnProblem& q) { ++q.device.singleToDouble; }};
    for (size_t i = 0; i < changes.size(); ++i) {
        FlatKnnProblem other = p;
        changes[i](other);
        EXPECT_FALSE(planAlike(p, other)) << "change " << i;
    }
}

} // namespace
} // namespace faiss_bits::test
