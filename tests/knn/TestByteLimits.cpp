/// Limits of a scan in 8 bits that come from strips, beside those of 16: what
/// passes has to hold what `complete` says for either scan.

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/knn/fused/StripLimits.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kStrips = 256;

struct LimitsOfQuery {
    float limit;
    float complete;
    float limitOfBytes;
    uint32_t cost;
};

class ByteLimits : public GpuTest {
   protected:
    /// Of one query of this length, where nine of the strips have a vector of
    /// length `longest` along it, and the others one across it.
    static LimitsOfQuery of(
            float length,
            float longest,
            uint32_t rank = 7,
            uint32_t overfull = 0) {
        std::vector<float> keys(kStrips, longest * longest);
        for (int i = 0; i < 9; ++i) {
            keys[i] -= 2 * longest * length;
        }
        return ofKeys(keys, length, longest, rank, overfull);
    }

    /// The same of keys that are some part of the bound apart, with a filter
    /// that allows so many of the sample's members; 0: none.
    static LimitsOfQuery ofSteps(uint32_t allowed, uint32_t members = 1000) {
        std::vector<float> keys(kStrips);
        for (uint32_t i = 0; i < kStrips; ++i) {
            keys[i] = -5 + float(i) / 128;
        }
        return ofKeys(keys, 3, 1, 7, 0, allowed, members);
    }

   private:
    static LimitsOfQuery ofKeys(
            const std::vector<float>& keys,
            float length,
            float longest,
            uint32_t rank,
            uint32_t overfull,
            uint32_t allowed = 0,
            uint32_t members = 0) {
        TensorImageFacts facts;
        facts.greatestLength = longest;
        facts.residual = longest * 0x1p-12f;
        TensorImageFacts factsOfBytes = facts;
        factsOfBytes.residual = longest * 0x1p-8f;

        const DeviceBuffer<TensorImageFacts> image(std::vector{facts});
        const DeviceBuffer<TensorImageFacts> bytes(std::vector{factsOfBytes});
        const DeviceBuffer<float> norm(std::vector{length * length});
        const DeviceBuffer<float> residual(std::vector{length * 0x1p-12f});
        const DeviceBuffer<float> residualOfBytes(
                std::vector{length * 0x1p-8f});
        const DeviceBuffer<float> strips(keys);
        DeviceBuffer<float> limit(1), complete(1), limitOfBytes(1);
        DeviceBuffer<uint32_t> count(1), cost(1, 0);

        StripLimitParams params;
        params.search.rows = 1;
        params.search.d = 512;
        params.search.k = 10;
        params.search.numCandidates = 3584;
        params.search.imageFacts = image.data();
        params.search.queryNorms = norm.data();
        params.search.queryResiduals = residual.data();
        params.keys = strips.data();
        params.strips = kStrips;
        params.rank = rank;
        params.limits = limit.data();
        params.complete = complete.data();
        params.counts = count.data();
        params.bytes.facts = bytes.data();
        params.bytes.residuals = residualOfBytes.data();
        params.bytes.limits = limitOfBytes.data();
        params.bytes.costs = cost.data();
        params.bytes.mostCost = ByteSearch::kFar - 1;
        const DeviceBuffer<uint32_t> ofFilter(std::vector{allowed});
        params.bytes.allowed = allowed > 0 ? ofFilter.data() : nullptr;
        params.bytes.members = members;
        launchStripLimits(Metric::L2, params, {}, overfull, nullptr);
        return {limit.download()[0],
                complete.download()[0],
                limitOfBytes.download()[0],
                cost.download()[0]};
    }
};

TEST_F(ByteLimits, SmallAreWiderThanThoseOf16Bits) {
    for (float scale : {0x1p-40f, 1.0f, 0x1p40f}) {
        const LimitsOfQuery found = of(3 * scale, scale);
        EXPECT_LT(found.complete, found.limit);
        EXPECT_LT(found.limit, found.limitOfBytes);
        EXPECT_LT(found.limitOfBytes, kInfinity);
    }
}

/// Near 2^60 the bound of 16 bits, which takes vectors to be as long as their
/// distance allows, is none before that of 8, which knows how long they are.
TEST_F(ByteLimits, SmallAllPassBothScansOrNeither) {
    int allPass = 0;
    int somePass = 0;
    for (double log = 57; log <= 62; log += 1.0 / 16) {
        for (float longest : {0x1p57f, 0x1p50f, 0x1p59f}) {
            SCOPED_TRACE(log);
            const LimitsOfQuery found = of(float(std::exp2(log)), longest);
            const bool all = found.limit == kInfinity;
            EXPECT_EQ(found.complete == kInfinity, all);
            if (all) {
                EXPECT_EQ(found.limitOfBytes, kInfinity);
            }
            ++(all ? allPass : somePass);
        }
    }
    EXPECT_GT(allPass, 0);
    EXPECT_GT(somePass, 0);
}

/// With a filter as many times more pass in 8 bits as vectors are not allowed.
TEST_F(ByteLimits, SmallCostsOfAFilter) {
    const uint32_t cost = ofSteps(0).cost;
    EXPECT_GT(cost, 3u);
    EXPECT_EQ(ofSteps(1000).cost, cost);
    EXPECT_NEAR(ofSteps(200).cost, 5.0 * cost, 3);
    EXPECT_NEAR(ofSteps(10).cost, 100.0 * cost, 51);
    EXPECT_LE(ofSteps(1, 1u << 31).cost, ByteSearch::kFar);
}

TEST_F(ByteLimits, SmallNoNumberHasNoNeighbours) {
    const LimitsOfQuery found = of(std::nanf(""), 1);
    EXPECT_EQ(found.limit, -kInfinity);
    EXPECT_EQ(found.limitOfBytes, -kInfinity);
    EXPECT_TRUE(std::isnan(found.complete));
}

TEST_F(ByteLimits, SmallGivenUpIsGivenUpByBoth) {
    const LimitsOfQuery found = of(3, 1, 7, 5);
    EXPECT_EQ(found.limit, -kInfinity);
    EXPECT_EQ(found.limitOfBytes, -kInfinity);
    EXPECT_EQ(found.complete, -kInfinity);
}

TEST_F(ByteLimits, SmallFewerThanTheRankLetAllPass) {
    const LimitsOfQuery found = of(3, 1, kStrips + 1);
    EXPECT_EQ(found.limit, kInfinity);
    EXPECT_EQ(found.complete, kInfinity);
    EXPECT_EQ(found.limitOfBytes, kInfinity);
}

} // namespace
} // namespace faiss_bits::test
