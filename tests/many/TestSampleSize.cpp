/// When shards gain by limits of one sample of all: both sides of every edge.

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/many/SampleSize.h"
#include "kernels/knn/fused/FusedKnn.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::gainsBySample;
using gpu::detail::leastSampleQueries;
using gpu::detail::sampleOf;
using gpu::detail::SampleSize;

constexpr idx_t kMillion = idx_t(1) << 20;

std::vector<idx_t> even(int shards, idx_t total) {
    return std::vector<idx_t>(size_t(shards), total / shards);
}

TEST(SampleSize, OneOfSixteenOrTheMost) {
    for (idx_t total : {16384, 100000, 1 << 20}) {
        EXPECT_EQ(sampleOf(total).size, total / 16) << total;
        EXPECT_EQ(sampleOf(total).total, total);
    }
    for (idx_t total : {kMillion + 16, 4 * kMillion, idx_t(1) << 33}) {
        EXPECT_EQ(sampleOf(total).size, 65536) << total;
    }
    EXPECT_DOUBLE_EQ(sampleOf(4 * kMillion).share(), 1. / 64);
}

/// 512 on one device; 2,048 where every shard is alone on its device, and
/// between them by how many share one.
TEST(SampleSize, FewQueriesGainNothing) {
    struct Case {
        int shards;
        int groups;
        idx_t least;
    };
    for (const Case& c :
         {Case{2, 1, 512},
          Case{64, 1, 512},
          Case{2, 2, 2048},
          Case{8, 8, 2048},
          Case{4, 2, 1024},
          Case{5, 3, 1228},
          Case{8, 2, 512},
          Case{64, 2, 512}}) {
        SCOPED_TRACE(::testing::Message() << c.shards << " in " << c.groups);
        EXPECT_EQ(leastSampleQueries(c.shards, c.groups), c.least);
        const auto sizes = even(c.shards, 2 * kMillion);
        EXPECT_FALSE(gainsBySample(sizes, c.groups, c.least - 1, 10));
        EXPECT_TRUE(gainsBySample(sizes, c.groups, c.least, 10));
    }
}

TEST(SampleSize, OneShardOrSmallOnesGainNothing) {
    EXPECT_FALSE(gainsBySample({2 * kMillion}, 1, 10000, 10));
    EXPECT_TRUE(gainsBySample({8192, 8192}, 1, 10000, 10));
    EXPECT_FALSE(gainsBySample({8192, 8191}, 1, 10000, 10));
    EXPECT_FALSE(gainsBySample({8191, kMillion, kMillion}, 1, 10000, 10));
    EXPECT_FALSE(gainsBySample({kMillion, 0}, 1, 10000, 10));
}

TEST(SampleSize, NoLimitsForKBeyondAList) {
    const auto sizes = even(2, kMillion);
    EXPECT_TRUE(gainsBySample(sizes, 1, 10000, 2048));
    EXPECT_FALSE(gainsBySample(sizes, 1, 10000, 2049));
}

/// What was measured: 1,328 more than k = 2000 were a gain, 2,992 more a loss.
TEST(SampleSize, ManyRescoredInVainGainNothing) {
    const auto inVain = [](idx_t total) {
        const SampleSize sample = sampleOf(total);
        return sample.rank(2000) * total / sample.size - 2000;
    };
    EXPECT_EQ(inVain(2 * kMillion), 1328);
    EXPECT_EQ(inVain(8 * kMillion), 2992);
    for (int groups : {1, 2}) {
        EXPECT_TRUE(gainsBySample(even(2, 2 * kMillion), groups, 10240, 2000));
        EXPECT_FALSE(gainsBySample(even(2, 8 * kMillion), groups, 10240, 2000));
        EXPECT_TRUE(gainsBySample(even(2, 8 * kMillion), groups, 10240, 10));
    }
}

/// A sample of 1,024 has no 129th neighbour to say much of.
TEST(SampleSize, SmallSamplesSayTooLittle) {
    const SampleSize small = sampleOf(16384);
    bool said = true;
    for (idx_t k = 1; k <= 2048; ++k) {
        const bool says = small.saysEnough(k);
        ASSERT_EQ(says, sampleRank(double(k), 1. / 16) <= 128) << k;
        EXPECT_TRUE(said || !says) << k; // never again
        said = says;
        EXPECT_EQ(gainsBySample({8192, 8192}, 1, 10000, k), says) << k;
    }
    EXPECT_FALSE(said);
    EXPECT_TRUE(sampleOf(32768).saysEnough(2000));
}

/// Both rules, of every k and of many sizes.
TEST(SampleSize, EveryK) {
    int useless = 0, tooFew = 0, gains = 0;
    for (idx_t total = 16384; total <= idx_t(1) << 32; total = total * 3 / 2) {
        const SampleSize sample = sampleOf(total);
        for (idx_t k = 1; k <= 2048; ++k) {
            const idx_t rank = sampleRank(double(k), sample.share());
            ASSERT_EQ(sample.rank(k), rank);
            const bool few = 8 * rank > sample.size;
            const double within =
                    double(rank) * double(total) / double(sample.size);
            const double over = within - double(k) - 2048;
            if (std::abs(over) < 1e-6) {
                continue; // rounding decides
            }
            ASSERT_EQ(sample.saysEnough(k), !few && over < 0)
                    << k << " of " << total;
            useless += over > 0;
            tooFew += few;
            gains += !few && over < 0;
        }
    }
    EXPECT_GT(useless, 1000);
    EXPECT_GT(tooFew, 100);
    EXPECT_GT(gains, 1000);
}

TEST(SampleSize, VectorsWithin) {
    const SampleSize sample = sampleOf(2 * kMillion); // one of 32
    EXPECT_EQ(sample.numWithin(2000, 2 * kMillion), 3328);
    EXPECT_EQ(sample.numWithin(2000, kMillion), 1664);
    EXPECT_EQ(sample.numWithin(2000, 0), 0);
}

} // namespace
} // namespace faiss_bits::test
