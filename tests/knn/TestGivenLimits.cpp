/// Certified searches with limits from elsewhere: all that is within them is
/// found, in its place, whatever they are.

#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class GivenLimits : public FlatKnnCertified {
   protected:
    struct Data {
        std::vector<float> vectors;
        std::vector<float> queries;
        std::vector<std::vector<Ranked>> all; // of each query
    };

    static Data dataOf(const CertifiedCase& c, Hard kind) {
        Data data;
        data.vectors = makeHard(kind, c.n, c.d, 1);
        data.queries = makeHard(kind, c.q, c.d, 2);
        roundAllTo(c.dataType, data.vectors);
        roundAllTo(c.dataType, data.queries);
        for (int64_t i = 0; i < c.q; ++i) {
            data.all.push_back(canonicalTopK(
                    c.metric,
                    c.p,
                    data.queries.data() + i * c.d,
                    data.vectors.data(),
                    c.n,
                    c.d,
                    c.n));
        }
        return data;
    }

    /// Of the query's vector of some rank; before all of them; none.
    static float limitOf(
            const CertifiedCase& c,
            const std::vector<Ranked>& all,
            int64_t query) {
        const int64_t ranks[] = {0, 1, c.k / 2, c.k - 1, c.k, 3 * c.k};
        const bool largest = isSimilarity(c.metric);
        switch (query % 9) {
            case 6:
                return all.empty() ? 1
                                   : std::nextafter(
                                             float(all[0].key),
                                             largest ? kInfinity : -kInfinity);
            case 7:
                return largest ? -kInfinity : kInfinity;
            case 8:
                return std::nanf("");
            default:
                break;
        }
        if (all.empty()) {
            return 1;
        }
        return float(
                all[std::min<size_t>(ranks[query % 9], all.size() - 1)].key);
    }

    /// What is within the limit comes first, all of it; behind that vectors of
    /// the index in order.
    static void checkWithin(
            const CertifiedCase& c,
            const Data& data,
            const Result& result) {
        const bool largest = isSimilarity(c.metric);
        for (int64_t i = 0; i < c.q; ++i) {
            const float limit = c.limits[i];
            const bool isLimit = std::isfinite(limit);
            const float* distances = result.distances.data() + i * c.k;
            const int64_t* ids = result.ids.data() + i * c.k;
            std::vector<Ranked> within;
            for (const Ranked& one : data.all[i]) {
                const float key = float(one.key);
                if (int64_t(within.size()) < c.k &&
                    (!isLimit || (largest ? key >= limit : key <= limit))) {
                    within.push_back(one);
                }
            }
            const int64_t count = int64_t(within.size());
            if (!isLimit) {
                ASSERT_TRUE(isCanonical(within, largest, distances, ids, c.k))
                        << "query " << i;
                continue;
            }
            if (count > 0) {
                ASSERT_TRUE(isCanonical(within, largest, distances, ids, count))
                        << "query " << i << " of limit " << limit;
            }
            std::vector<float> keys(c.n, std::nanf(""));
            for (const Ranked& one : data.all[i]) {
                keys[one.id] = float(one.key);
            }
            std::pair<float, int64_t> before(-kInfinity, -1);
            for (int64_t j = count; j < c.k; ++j) {
                if (ids[j] == -1) {
                    for (; j < c.k; ++j) {
                        ASSERT_EQ(ids[j], -1) << "query " << i;
                        ASSERT_EQ(distances[j], largest ? -FLT_MAX : FLT_MAX);
                    }
                    break;
                }
                ASSERT_EQ(distances[j], keys[ids[j]] + 0.f) << "query " << i;
                const std::pair<float, int64_t> now(
                        largest ? -distances[j] : distances[j], ids[j]);
                ASSERT_LT(before, now) << "query " << i << " place " << j;
                before = now;
            }
        }
    }

    Result expectWithin(CertifiedCase c, Hard kind) {
        const Data data = dataOf(c, kind);
        for (int64_t i = 0; i < c.q; ++i) {
            c.limits.push_back(limitOf(c, data.all[i], i));
        }
        SCOPED_TRACE(c.describe() + " data " + std::to_string(int(kind)));
        const Result result = search(c, data.vectors, data.queries);
        checkWithin(c, data, result);
        return result;
    }
};

TEST_F(GivenLimits, SmallHardDataOfEveryMetric) {
    for (Hard kind : kHard) {
        for (Metric metric : kAllMetrics) {
            for (int64_t q : {9, 27}) {
                for (int d : {3, 50}) {
                    CertifiedCase c;
                    c.metric = metric;
                    c.n = 9001;
                    c.q = q;
                    c.d = d;
                    c.keptImage = d == 50;
                    expectWithin(c, kind);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(GivenLimits, SixteenBitsAndManyQueries) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Infinite}) {
            CertifiedCase c;
            c.dataType = type;
            c.n = 12000;
            c.q = 300;
            c.k = 40;
            expectWithin(c, kind);
        }
    }
}

/// Limits that little more than k vectors pass lead there at once, and with
/// fewer than k no query is searched again.
TEST_F(GivenLimits, NothingIsRepeated) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1}) {
        CertifiedCase c;
        c.metric = metric;
        c.n = 20000;
        c.q = 100;
        c.d = 40;
        c.keptImage = true;
        const Data data = dataOf(c, Hard::Offset);
        for (int64_t i = 0; i < c.q; ++i) {
            c.limits.push_back(float(data.all[i][i % (2 * c.k)].key));
        }
        const Result result = search(c, data.vectors, data.queries);
        checkWithin(c, data, result);
        EXPECT_EQ(result.repeated, 0) << c.describe();
    }
}

/// Methods that make no use of limits find all k.
TEST_F(GivenLimits, OfFewVectorsTheyAreIgnored) {
    CertifiedCase c;
    c.n = 700;
    c.limits.assign(c.q, 0.f);
    expectCanonical(c, Hard::Clusters);
}

} // namespace
} // namespace faiss_bits::test
