/// Certified searches of many vectors with a filter, by bits and by lists:
/// every place is the canonical one, whether the scan is in 8 bits or in 16,
/// of a copy or of all.

#include <algorithm>
#include <cstring>

#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/FusedLists.h"
#include "kernels/knn/fused/SampleKernels.h"
#include "kernels/knn/fused/tensor/TensorScan.h"
#include "tests/knn/CertifiedHarness.h"
#include "tests/knn/FilterHarness.h"

namespace faiss_bits::test {
namespace {

constexpr int64_t kN = 524288 + 77;
constexpr int64_t kSecond = kN / 16; // members of the second sample

/// Which way a filtered search is expected to go.
enum class Way { Bits, ListInBytes, ListInHalves };

/// Vectors with a kept image and queries, and the ranking of all for some.
class Searched {
   public:
    Searched(
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            int d,
            Metric metric = Metric::L2)
            : d_(d),
              q_(int64_t(queries.size()) / d),
              vectors_(vectors),
              queries_(queries) {
        p_.metric = metric;
        p_.numVectors = kN;
        p_.numQueries = q_;
        p_.d = d;
        p_.k = 1;
        p_.vectors = vectors_.data();
        p_.queries = queries_.data();
        p_.device = deviceTraits();
        p_.device.singleToDouble = 32;
        p_.imageHasBytes = true;
        if (metric != Metric::Cosine) {
            image_ = DeviceBuffer<uint8_t>(searchImageBytes(p_), 0x7E);
            WorkspaceSlices slices({image_.data(), image_.size()});
            runSearchImage(p_, SearchImage(p_, slices), nullptr);
            p_.searchImage = image_.data();
        }
        constexpr int64_t kChecked = 3;
        for (int64_t i = 0; i < kChecked; ++i) {
            checked_.push_back(i * (q_ - 1) / (kChecked - 1));
            ranked_.push_back(canonicalTopK(
                    metric,
                    2,
                    queries.data() + checked_.back() * d,
                    vectors.data(),
                    kN,
                    d,
                    kN));
        }
    }

    FlatKnnProblem problem(int k, const DeviceFilter& filter) const {
        FlatKnnProblem p = p_;
        p.k = k;
        filter.apply(p);
        return p;
    }

    ::testing::AssertionResult check(
            const std::vector<bool>& members,
            const KnnResult& result,
            int k) const {
        for (size_t i = 0; i < checked_.size(); ++i) {
            std::vector<Ranked> want;
            for (const Ranked& one : ranked_[i]) {
                if (members[one.id] && int(want.size()) < k) {
                    want.push_back(one);
                }
            }
            const auto same = isCanonical(
                    want,
                    isSimilarity(p_.metric),
                    result.distances.data() + checked_[i] * k,
                    result.ids.data() + checked_[i] * k,
                    k);
            if (!same) {
                return ::testing::AssertionFailure()
                        << same.message() << " of query " << checked_[i];
            }
        }
        return ::testing::AssertionSuccess();
    }

   private:
    int d_;
    int64_t q_;
    DeviceBuffer<float> vectors_;
    DeviceBuffer<float> queries_;
    DeviceBuffer<uint8_t> image_;
    FlatKnnProblem p_;
    std::vector<int64_t> checked_;
    std::vector<std::vector<Ranked>> ranked_;
};

class FusedFilters : public FlatKnnCertified {
   protected:
    struct Found : KnnResult {
        unsigned long long repeated = 0;
    };

    Found run(FlatKnnProblem p, size_t maxScratch = kRoomyScratch) const {
        DeviceBuffer<float> outDistances(p.numQueries * p.k, 0xA5);
        DeviceBuffer<int64_t> outIds(p.numQueries * p.k, 0xA5);
        DeviceBuffer<unsigned long long> counts(1, 0x00);
        p.outDistances = outDistances.data();
        p.outIds = outIds.data();
        p.numRepeated = counts.data();
        const FlatKnnPlan plan = planFlatKnn(p, maxScratch);
        DeviceBuffer<uint8_t> scratch(plan.bytes);
        runFlatKnn(
                plan, p, {scratch.data(), scratch.size()}, handle(), nullptr);
        Found found;
        found.distances = outDistances.download();
        found.ids = outIds.download();
        found.repeated = counts.download()[0];
        return found;
    }

    /// By bits, by a list, and by one with holes behind it. Returns how many
    /// queries were repeated, by bits.
    unsigned long long expectFiltered(
            const Searched& data,
            const std::vector<bool>& members,
            int k,
            const std::string& name) const {
        KnnResult first;
        unsigned long long repeated = 0;
        for (const int holes : {-1, 0, 300}) {
            const DeviceFilter filter(members, holes >= 0, std::max(holes, 0));
            const FlatKnnProblem p = data.problem(k, filter);
            SCOPED_TRACE(
                    name + " k=" + std::to_string(k) + " d=" +
                    std::to_string(p.d) + " holes=" + std::to_string(holes) +
                    ": " + planFlatKnn(p, kRoomyScratch).toString());
            const Found found = run(p);
            EXPECT_TRUE(data.check(members, found, k));
            if (holes < 0) {
                first = found;
                repeated = found.repeated;
            }
            EXPECT_TRUE(first == found) << "by bits and by a list";
        }
        return repeated;
    }

    static Way wayOf(const FlatKnnProblem& p) {
        const FlatKnnPlan plan = planFlatKnn(p, kRoomyScratch);
        EXPECT_TRUE(plan.fused && plan.fused->secondStrips.perRow > 0)
                << plan.toString();
        const FlatKnnProblem seen = seenBy(*plan.fused, p);
        return !scansList(seen)    ? Way::Bits
                : takesBytes(seen) ? Way::ListInBytes
                                   : Way::ListInHalves;
    }

    static std::vector<float> uniform(int64_t rows, int d, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<float> out(size_t(rows) * d);
        for (float& one : out) {
            one = float(random() >> 8) * 0x1p-24f;
        }
        return out;
    }

    /// Each with a probability.
    static std::vector<bool> share(double of) {
        std::mt19937 random(5);
        std::vector<bool> members(kN);
        for (int64_t i = 0; i < kN; ++i) {
            members[i] = random() < of * 4294967296.0;
        }
        return members;
    }

    static std::vector<bool> range(int64_t first, int64_t end) {
        std::vector<bool> members(kN);
        std::fill(members.begin() + first, members.begin() + end, true);
        return members;
    }

    /// Members of the second sample, or all others.
    static std::vector<bool> sampled(bool are) {
        DeviceBuffer<int32_t> ids(kSecond);
        runSampleIds(kN, kSecond, ids.data(), nullptr);
        std::vector<bool> members(kN, !are);
        for (int32_t id : ids.download()) {
            members[id] = are;
        }
        return members;
    }
};

class FusedFiltersOf : public FusedFilters,
                       public ::testing::WithParamInterface<int> {};

/// All on the same data, whose ranking takes longest.
TEST_P(FusedFiltersOf, Uniform) {
    const int d = GetParam();
    const Searched data(uniform(kN, d, 1), uniform(420, d, 2), d);
    for (double of : {0.02, 0.1, 0.3, 0.5, 0.6, 0.75, 0.99}) {
        for (int k : {10, 100}) {
            const auto repeated = expectFiltered(
                    data, share(of), k, "share " + std::to_string(of));
            EXPECT_LE(repeated, 2u) << of;
        }
    }
    // Parts of the vectors in their order.
    expectFiltered(data, range(0, kN / 2), 10, "first half");
    expectFiltered(data, range(kN / 2 - 5, kN), 10, "last half");
    expectFiltered(data, range(kN - 20000, kN), 11, "the last 20,000");
    expectFiltered(data, range(1, kN - 1), 100, "all but the ends");
    // Strips are of the second sample: nothing else allowed, or none of it.
    expectFiltered(data, sampled(true), 10, "the sample");
    expectFiltered(data, sampled(false), 10, "all but the sample");
    // Fewer than there are places, as many, and one more.
    for (int64_t count : {0, 1, 9, 10, 11, 300}) {
        std::vector<bool> members(kN);
        for (int64_t i = 0; i < count; ++i) {
            members[(i * 77777 + 13) % kN] = true;
        }
        expectFiltered(data, members, 10, std::to_string(count) + " allowed");
    }
    expectFiltered(data, range(kN - 9, kN), 10, "the last 9");
}

INSTANTIATE_TEST_SUITE_P(Dims, FusedFiltersOf, ::testing::Values(96, 130, 514));

/// The allowed ones are far from all that the queries are near to.
TEST_F(FusedFilters, FarClusters) {
    constexpr int d = 130;
    auto vectors = uniform(kN, d, 9);
    std::vector<bool> members(kN);
    for (int64_t i = 0; i < kN; ++i) {
        if (i % 5 < 2) {
            vectors[size_t(i) * d + i % d] += 6;
            members[i] = true;
        }
    }
    const Searched data(vectors, uniform(300, d, 10), d);
    expectFiltered(data, members, 10, "two in five, far");
    members.flip();
    expectFiltered(data, members, 100, "three in five, near");
}

TEST_F(FusedFilters, HardData) {
    constexpr int d = 130;
    for (Hard kind :
         {Hard::Bytes, Hard::Clusters, Hard::Duplicates, Hard::Infinite}) {
        SCOPED_TRACE("data " + std::to_string(int(kind)));
        const Searched data(
                makeHard(kind, kN, d, 1), makeHard(kind, 420, d, 2), d);
        expectFiltered(data, share(0.4), 10, "two in five");
        expectFiltered(data, share(0.9), 10, "nine in ten");
        if (HasFailure()) {
            return;
        }
    }
}

/// Some tiles of queries are not for 8 bits: all of their scan go by 16 then,
/// whatever other scans of the same search do.
TEST_F(FusedFilters, TilesOfTheirOwn) {
    constexpr int64_t kTile = ByteSearch::kTileQueries;
    const std::vector<bool> members = share(0.5);
    const DeviceFilter filter(members, true);
    for (int d : {130, 514}) {
        const auto vectors = uniform(kN, d, 1);
        for (const std::vector<int>& longTiles :
             {std::vector<int>{1}, std::vector<int>{2, 3}}) {
            auto queries = uniform(4 * kTile, d, 2);
            for (int tile : longTiles) {
                for (int64_t i = tile * kTile; i < (tile + 1) * kTile; ++i) {
                    queries[size_t(i) * d] = 3000;
                }
            }
            const Searched data(vectors, queries, d);
            const FlatKnnProblem p = data.problem(10, filter);
            const FlatKnnPlan whole = planFlatKnn(p, kRoomyScratch);
            ASSERT_TRUE(whole.fused);
            // Two scans one after the other, of half of the queries each.
            const size_t scratch = whole.bytes - 1;
            const FlatKnnPlan halves = planFlatKnn(p, scratch);
            ASSERT_TRUE(halves.fused);
            EXPECT_EQ(halves.fused->tileQueries, 2 * kTile);
            EXPECT_FALSE(halves.fused->leavesList);
            for (size_t bytes : {kRoomyScratch, scratch}) {
                EXPECT_TRUE(data.check(members, run(p, bytes), 10))
                        << "first long tile " << longTiles[0] << " scratch "
                        << bytes;
            }
        }
    }
}

/// Norms leave vectors out of strips by cosine as well, and in few dimensions,
/// which have no 8 bits; components do by inner product.
TEST_F(FusedFilters, OtherScans) {
    constexpr int d = 40;
    const auto vectors = uniform(kN, d, 1);
    const auto queries = uniform(300, d, 2);
    for (Metric metric : {Metric::L2, Metric::Cosine, Metric::InnerProduct}) {
        const Searched data(vectors, queries, d, metric);
        expectFiltered(data, share(0.3), 10, metricName(metric));
        expectFiltered(data, share(0.8), 100, metricName(metric));
        if (HasFailure()) {
            return;
        }
    }
}

/// Which of them copy what is allowed together.
TEST_F(FusedFilters, Ways) {
    if (!hasTensorScan(TensorScanKernel::Wgmma, deviceTraits())) {
        GTEST_SKIP() << "no scan in 8 bits";
    }
    const auto wayOfShare = [&](double of, int64_t q) {
        const uint32_t bits = 0;
        const int32_t ids = 0;
        const float image = 0;
        FlatKnnProblem p;
        p.numVectors = kN;
        p.numQueries = q;
        p.d = 128;
        p.k = 10;
        p.device = deviceTraits();
        p.device.singleToDouble = 32;
        p.imageHasBytes = true;
        p.searchImage = &image;
        p.allowedBits = &bits;
        p.allowedIds = of <= 0.75 ? &ids : nullptr;
        p.numAllowed = of <= 0.75 ? idx_t(of * kN) : 0;
        return wayOf(p);
    };
    EXPECT_EQ(wayOfShare(0.1, 1024), Way::ListInHalves);
    EXPECT_EQ(wayOfShare(0.2, 30), Way::ListInHalves);
    EXPECT_EQ(wayOfShare(0.3, 30), Way::Bits);
    EXPECT_EQ(wayOfShare(0.3, 1024), Way::ListInBytes);
    EXPECT_EQ(wayOfShare(0.5, 300), Way::Bits);
    EXPECT_EQ(wayOfShare(0.5, 1024), Way::ListInBytes);
    EXPECT_EQ(wayOfShare(0.75, 1024), Way::Bits);
    EXPECT_EQ(wayOfShare(0.75, 10240), Way::ListInBytes);
    EXPECT_EQ(wayOfShare(0.9, 10240), Way::Bits);
}

/// Where the copies have no room, all are scanned.
TEST_F(FusedFilters, NoRoomForACopy) {
    constexpr int d = 130;
    const Searched data(uniform(kN, d, 1), uniform(420, d, 2), d);
    const std::vector<bool> members = share(0.4);
    const DeviceFilter filter(members, true);
    const FlatKnnProblem p = data.problem(10, filter);
    const size_t whole = planFlatKnn(p, kRoomyScratch).bytes;
    bool isLeft = false;
    for (size_t bytes = whole; bytes > size_t(48) << 20; bytes /= 2) {
        const FlatKnnPlan plan = planFlatKnn(p, bytes);
        ASSERT_TRUE(plan.fused) << bytes;
        const FlatKnnPlan again = planFlatKnn(p, plan.bytes);
        EXPECT_EQ(again.toString(), plan.toString());
        isLeft |= plan.fused->leavesList;
        EXPECT_TRUE(data.check(members, run(p, bytes), 10)) << plan.toString();
    }
    EXPECT_TRUE(isLeft);
}

} // namespace
} // namespace faiss_bits::test
