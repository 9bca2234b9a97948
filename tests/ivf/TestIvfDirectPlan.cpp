/// Plans and expected times of direct searches of inverted lists, which need no
/// device.

#include <gtest/gtest.h>

#include "kernels/ivf/IvfDirect.h"
#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/IvfTimes.h"
#include "tests/ivf/IvfPlanProblem.h"

namespace faiss_bits::test {
namespace {

TEST(IvfDirectPlan, FewDimensionsTakeMoreQueries) {
    struct Line {
        ListCoding coding;
        int d;
        int k;
        idx_t most;
    };
    const Line lines[] = {
            {ListCoding::Float32, 32, 128, 1024},
            {ListCoding::Float32, 33, 128, 256},
            {ListCoding::Float32, 32, 129, 256},
            {ListCoding::Scalar8, 32, 10, 1024},
            {ListCoding::Scalar8, 33, 10, 256},
            {ListCoding::Product, 32, 10, 256}};
    for (const Line& line : lines) {
        IvfKnnProblem p = someProblem();
        p.device.singleToDouble = 2;
        p.lists.coding = line.coding;
        p.lists.decoding.numParts = 16;
        p.lists.d = line.d;
        p.k = line.k;
        p.mostVectors = 1000;
        const auto text = ::testing::Message()
                << "coding " << int(line.coding) << " d " << line.d << " k "
                << line.k;
        const idx_t most = mostIvfDirectQueries(p.lists, p.k);
        EXPECT_EQ(most, line.most) << text;
        const auto isThere = [&](idx_t queries) {
            p.numQueries = queries;
            return planIvfDirect(p, size_t(1) << 30).has_value();
        };
        EXPECT_TRUE(isThere(most)) << text;
        EXPECT_FALSE(isThere(most + 1)) << text;
    }
}

TEST(IvfDirectPlan, ProductCodesTakeMoreQueriesWhereTheyHaveEstimates) {
    for (int d : {128, 256}) {
        const idx_t most = d == 128 ? 4096 : 256;
        IvfKnnProblem p = someProblem();
        p.device.singleToDouble = 2;
        p.lists.coding = ListCoding::Product;
        p.lists.layout = ListLayout::Rows;
        p.lists.decoding.numParts = 32;
        p.lists.d = d;
        p.mostVectors = 1000;
        const auto isThere = [&](idx_t queries) {
            p.numQueries = queries;
            return planIvfDirectWay(p, size_t(1) << 30, false, true)
                    .has_value();
        };
        EXPECT_TRUE(isThere(most)) << d;
        EXPECT_FALSE(isThere(most + 1)) << d;
    }
}

TEST(IvfDirectPlan, QueriesOfATileDecodeAVectorOnce) {
    // What codes take beside float32, for a component of a pair; in rows, which
    // one kernel scans whatever the dimensions are.
    const auto decoding = [](int d) {
        IvfDirectPlan plan;
        plan.shared = true;
        IvfKnnProblem p = someProblem();
        p.lists.layout = ListLayout::Rows;
        p.lists.numLists = 64;
        p.lists.d = d;
        p.nprobe = 8;
        p.numQueries = 256;
        const double floats = ivf_times::ofDirect(plan, p);
        p.lists.coding = ListCoding::Scalar8;
        return (ivf_times::ofDirect(plan, p) - floats) / d;
    };
    EXPECT_NEAR(
            decoding(128) / decoding(32),
            double(kIvfAloneQueries) / kIvfSharedQueries,
            0.01);
}

} // namespace
} // namespace faiss_bits::test
