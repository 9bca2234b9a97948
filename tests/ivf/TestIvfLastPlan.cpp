/// The plan that a thread remembers is the one that would be made.

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/ivf/IvfLastPlan.h"
#include "kernels/common/Error.h"
#include "tests/ivf/IvfPlanProblem.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::planAlike;
using gpu::detail::planOrLastPlan;

constexpr size_t kScratch = size_t(448) << 20;

void expectMade(const IvfKnnProblem& p, size_t maxBytes) {
    const IvfKnnPlan want = planIvfKnn(p, maxBytes);
    const IvfKnnPlan got = planOrLastPlan(p, maxBytes);
    EXPECT_EQ(got.toString(), want.toString());
    EXPECT_EQ(got.bytes, want.bytes);
    EXPECT_EQ(got.rowsAtATime, want.rowsAtATime);
    EXPECT_EQ(got.candidates, want.candidates);
    EXPECT_EQ(got.room, want.room);
    EXPECT_EQ(got.direct.has_value(), want.direct.has_value());
}

TEST(IvfLastPlan, ShapesThatFollowEachOther) {
    for (int k : {10, 100, 10}) {
        for (idx_t queries : {0, 1, 100, 10240}) {
            for (size_t maxBytes : {kScratch, kScratch, kScratch / 8}) {
                IvfKnnProblem p = someProblem();
                p.k = k;
                p.numQueries = queries;
                expectMade(p, maxBytes);
                p.mostVectors += 8 * 4096;
                expectMade(p, maxBytes);
                expectMade(p, maxBytes);
            }
        }
    }
}

TEST(IvfLastPlan, AfterAnError) {
    IvfKnnProblem p = someProblem();
    expectMade(p, kScratch);
    IvfKnnProblem bad = p;
    bad.nprobe = 0;
    EXPECT_THROW(planOrLastPlan(bad, kScratch), Error);
    EXPECT_THROW(planOrLastPlan(bad, kScratch), Error);
    expectMade(p, kScratch);
}

TEST(IvfLastPlan, WhatPlansDependOn) {
    static float numbers[2] = {};
    static idx_t ids[2] = {};
    IvfKnnProblem p = someProblem();
    p.queries = numbers;
    p.probes = ids;
    p.outDistances = numbers;
    p.outIds = ids;
    IvfKnnProblem elsewhere = p;
    elsewhere.queries = numbers + 1;
    elsewhere.probes = ids + 1;
    elsewhere.outDistances = numbers + 1;
    elsewhere.outIds = ids + 1;
    EXPECT_TRUE(planAlike(p, elsewhere));

    const std::vector<std::function<void(IvfKnnProblem&)>> changes = {
            [](IvfKnnProblem& q) { q.metric = Metric::InnerProduct; },
            [](IvfKnnProblem& q) { ++q.lists.numLists; },
            [](IvfKnnProblem& q) { ++q.lists.d; },
            [](IvfKnnProblem& q) { ++q.lists.numVectors; },
            [](IvfKnnProblem& q) { q.lists.layout = ListLayout::Rows; },
            [](IvfKnnProblem& q) { q.lists.coding = ListCoding::Float16; },
            [](IvfKnnProblem& q) { ++q.lists.decoding.numParts; },
            [](IvfKnnProblem& q) { q.lists.lengths64 = false; },
            [](IvfKnnProblem& q) { q.lists.idKind = ListIds::Places; },
            [](IvfKnnProblem& q) { ++q.lists.wordsOfList; },
            [](IvfKnnProblem& q) {
                q.lists.idTest.kind = ListIdTest::Kind::Range;
            },
            [](IvfKnnProblem& q) { ++q.lists.idTest.end; },
            [](IvfKnnProblem& q) { ++q.numQueries; },
            [](IvfKnnProblem& q) { ++q.nprobe; },
            [](IvfKnnProblem& q) { ++q.k; },
            [](IvfKnnProblem& q) { ++q.mostVectors; },
            [](IvfKnnProblem& q) { ++q.longestList; },
            [](IvfKnnProblem& q) { q.selectedShare = 0.5; },
            [](IvfKnnProblem& q) { q.probes = nullptr; },
            [](IvfKnnProblem& q) { q.centroids = numbers; },
            [](IvfKnnProblem& q) { q.centroidMetric = Metric::InnerProduct; },
            [](IvfKnnProblem& q) { q.mayWait = false; },
            [](IvfKnnProblem& q) { --q.device.multiprocessors; },
            [](IvfKnnProblem& q) { ++q.device.singleToDouble; }};
    for (size_t i = 0; i < changes.size(); ++i) {
        IvfKnnProblem other = p;
        changes[i](other);
        EXPECT_FALSE(planAlike(p, other)) << "change " << i;
    }
}

} // namespace
} // namespace faiss_bits::test
