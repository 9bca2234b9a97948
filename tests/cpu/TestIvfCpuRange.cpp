#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/cpu/ivf/IvfRange.h"
#include "tests/common/ExpectError.h"
#include "tests/cpu/IvfCpuHarness.h"

/// runIvfRange against the canonical distances of every vector in the lists.
namespace faiss_bits::test {

namespace {

cpu::IvfRangeProblem rangeOf(const IvfCpuData& data, float radius) {
    cpu::IvfRangeProblem p;
    p.metric = data.c.metric;
    p.d = data.c.d;
    p.numQueries = data.c.q;
    p.queries = data.queries.data();
    p.radius = radius;
    p.lists = &data.lists;
    p.numLists = data.c.numLists;
    p.nprobe = data.c.nprobe;
    p.probes = data.probes.data();
    p.allowed = data.c.filtered ? data.allowedPlaces.data() : nullptr;
    return p;
}

/// Of one query: list by list in the order of the probes, then by place.
std::vector<Ranked> inRange(const IvfCpuData& data, idx_t query, float radius) {
    const IvfCpuCase& c = data.c;
    std::vector<Ranked> found;
    for (idx_t i = 0; i < c.nprobe; ++i) {
        const idx_t list = data.probes[query * c.nprobe + i];
        if (list < 0) {
            continue;
        }
        std::vector<idx_t> places(data.lists.length(list));
        std::iota(places.begin(), places.end(), idx_t(0));
        for (idx_t place : c.filtered ? data.allowed[list] : places) {
            const float distance = canonicalDistance(
                    c.metric,
                    0,
                    data.queries.data() + query * c.d,
                    data.lists.rows[list].data() + place * c.d,
                    c.d);
            if (isSimilarity(c.metric) ? distance > radius
                                       : distance < radius) {
                found.push_back(
                        {double(distance), data.lists.ids[list][place]});
            }
        }
    }
    return found;
}

void expectExact(const IvfCpuData& data, const cpu::IvfRangeProblem& p) {
    const cpu::RangeResult<float> result = cpu::runIvfRange(p);
    EXPECT_EQ(0, data.lists.numOpen.load());
    ASSERT_EQ(result.limits.size(), size_t(data.c.q + 1));
    ASSERT_EQ(result.limits[0], 0);
    for (idx_t query = 0; query < data.c.q; ++query) {
        const std::vector<Ranked> expected = inRange(data, query, p.radius);
        const idx_t begin = result.limits[query];
        ASSERT_EQ(result.limits[query + 1] - begin, idx_t(expected.size()))
                << "query " << query << " of " << data.c << " radius "
                << p.radius << " threads " << p.threads;
        for (size_t i = 0; i < expected.size(); ++i) {
            const float distance = float(expected[i].key);
            ASSERT_EQ(result.ids[begin + i], expected[i].id)
                    << "place " << i << " of query " << query << " of "
                    << data.c << " radius " << p.radius;
            ASSERT_EQ(
                    std::memcmp(
                            &result.distances[begin + i],
                            &distance,
                            sizeof(float)),
                    0)
                    << result.distances[begin + i] << " in place of "
                    << distance;
        }
    }
}

/// Few, many and all in range; radii that occur.
void expectAllRadii(const IvfCpuData& data) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    std::vector<float> radii = {0, kInfinity, -kInfinity};
    for (idx_t query = 0; query < std::min<idx_t>(data.c.q, 2); ++query) {
        const std::vector<Ranked> all = inRange(
                data, query, isSimilarity(data.c.metric) ? -1e30f : 1e30f);
        for (size_t i = 0; i < all.size(); i += 1 + all.size() / 4) {
            radii.push_back(float(all[i].key));
        }
    }
    for (const float radius : radii) {
        for (int threads : {1, 3, 7}) {
            cpu::IvfRangeProblem p = rangeOf(data, radius);
            p.threads = threads;
            expectExact(data, p);
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
    }
}

} // namespace

TEST(TestIvfCpuRange, ShapesAndMetrics) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {1, 2, 7, 16, 33, 128, 1537}) {
            for (idx_t q : {0, 1, 3, 40}) {
                IvfCpuCase c;
                c.metric = metric;
                c.d = d;
                c.n = d > 1000 ? 200 : 500;
                c.q = q;
                c.filtered = (d + q) % 2;
                c.kept = q % 3 != 0;
                c.seed = d + uint32_t(q);
                expectAllRadii(uniformData(c));
            }
        }
    }
}

/// Lists at both sides of the length up to which they are scanned together, and
/// so many that these are more than are scanned at a time.
TEST(TestIvfCpuRange, ShortAndLongLists) {
    for (idx_t n : {12, 100, 330, 350, 5000}) {
        for (idx_t numLists : {1, 20, 700}) {
            for (bool kept : {false, true}) {
                IvfCpuCase c;
                c.metric = n % 100 ? Metric::L2 : Metric::InnerProduct;
                c.n = n;
                c.d = 9;
                c.numLists = numLists;
                c.nprobe = numLists;
                c.q = 4;
                c.kept = kept;
                c.filtered = n == 330;
                expectAllRadii(uniformData(c));
            }
        }
    }
    for (idx_t length : {15, 16, 17, 511, 512, 513, 4096, 4097}) {
        IvfCpuCase c;
        c.n = length;
        c.numLists = 1;
        c.d = 3;
        c.q = 2;
        c.nprobe = 2; // the same list twice
        IvfCpuData data = uniformData(c);
        std::fill(data.probes.begin(), data.probes.end(), idx_t(0));
        ASSERT_EQ(data.lists.length(0), length);
        expectAllRadii(data);
    }
}

TEST(TestIvfCpuRange, EveryTarget) {
    for (const std::string& target : cpu::targetNames()) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            IvfCpuCase c;
            c.metric = metric;
            const IvfCpuData data = uniformData(c);
            for (float radius : {0.5f, 2.f, 5.f, 12.f}) {
                cpu::IvfRangeProblem p = rangeOf(data, radius);
                p.target = target;
                expectExact(data, p);
            }
        }
    }
}

/// NaN, infinities, and lengths beyond float32's range.
TEST(TestIvfCpuRange, Values) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        IvfCpuCase c;
        c.metric = metric;
        c.d = 5;
        std::vector<float> vectors = uniformRows(c.n, c.d, 1);
        std::vector<float> queries = uniformRows(c.q, c.d, 2);
        const float bad[] = {
                std::numeric_limits<float>::quiet_NaN(),
                kInfinity,
                -kInfinity,
                3e38f,
                1e-40f};
        for (int i = 0; i < 5; ++i) {
            vectors[size_t(i) * 50 * c.d + i] = bad[i];
            queries[size_t(i) * 3 * c.d] = bad[i];
        }
        expectAllRadii(IvfCpuData(c, vectors, queries));
    }
}

TEST(TestIvfCpuRange, CountsAndInterrupts) {
    IvfCpuCase c;
    const IvfCpuData data = uniformData(c);
    SearchStats stats;
    cpu::IvfRangeProblem p = rangeOf(data, 5.f);
    p.stats = &stats;
    int calls = 0;
    p.interrupt = [&] { ++calls; };
    const auto found = cpu::runIvfRange(p);
    EXPECT_EQ(stats.certified, c.q);
    EXPECT_EQ(stats.repeated, 0);
    EXPECT_GE(stats.rescored, found.limits[c.q]);
    EXPECT_GT(calls, 0);
    p.interrupt = [] { throw std::runtime_error("enough"); };
    EXPECT_THROW(cpu::runIvfRange(p), std::runtime_error);
    EXPECT_EQ(0, data.lists.numOpen.load());
}

/// Lists in the order of their numbers, all with the same vectors.
class EqualLists : public cpu::IvfLists {
   public:
    EqualLists(idx_t length, int d) : length_(length), rows_(length * d, 1) {}
    idx_t length(idx_t) const override {
        return length_;
    }
    const float* open(idx_t) const override {
        return rows_.data();
    }
    void close(idx_t, const float*) const override {}
    bool areKept() const override {
        return true;
    }
    idx_t id(idx_t list, idx_t place) const override {
        return list * length_ + place;
    }

   private:
    idx_t length_;
    std::vector<float> rows_;
};

struct Enough : std::runtime_error {
    Enough() : std::runtime_error("enough") {}
};

cpu::IvfRangeProblem stoppedAtSecondCall(
        const cpu::IvfLists& lists,
        const std::vector<idx_t>& probes,
        const std::vector<float>& query) {
    cpu::IvfRangeProblem p;
    p.d = int(query.size());
    p.numQueries = 1;
    p.queries = query.data();
    p.radius = 1;
    p.lists = &lists;
    p.numLists = p.nprobe = idx_t(probes.size());
    p.probes = probes.data();
    p.threads = 1;
    auto left = std::make_shared<int>(2);
    p.interrupt = [left] {
        if (--*left == 0) {
            throw Enough();
        }
    };
    return p;
}

/// One query, and work for a second or so.
TEST(TestIvfCpuRange, IsInterruptedWithinAQuery) {
    const std::vector<float> query(128, 9);
    const EqualLists lists(4096, 128);
    std::vector<idx_t> probes(1000);
    std::iota(probes.begin(), probes.end(), idx_t(0));
    const auto p = stoppedAtSecondCall(lists, probes, query);
    EXPECT_THROW(cpu::runIvfRange(p), Enough);
}

TEST(TestIvfCpuRange, IsInterruptedWithinAList) {
    const std::vector<float> query(128, 9);
    std::vector<idx_t> places(5000000);
    for (size_t i = 0; i < places.size(); ++i) {
        places[i] = idx_t(i * 4096 / places.size());
    }
    const cpu::IvfPlaces allowed(places);
    // Places are named often: the memory is that of a short list.
    class Long : public EqualLists {
       public:
        using EqualLists::EqualLists;
        idx_t length(idx_t) const override {
            return 5000000;
        }
    };
    const Long list(4096, 128);
    const std::vector<idx_t> probes = {0};
    auto p = stoppedAtSecondCall(list, probes, query);
    p.allowed = &allowed;
    EXPECT_THROW(cpu::runIvfRange(p), Enough);
}

/// Lists that are cut, by threads or by the hook, have their results in order.
TEST(TestIvfCpuRange, CutListsKeepTheirOrder) {
    for (const bool filtered : {false, true}) {
        for (const idx_t numLists : {1, 3}) {
            for (const idx_t q : {1, 3, 20}) {
                IvfCpuCase c;
                c.n = 40000;
                c.d = 3;
                c.numLists = c.nprobe = numLists;
                c.q = q;
                c.filtered = filtered;
                const IvfCpuData data = uniformData(c);
                for (const float radius : {0.05f, 1.f, 100.f}) {
                    for (const int threads : {1, 2, 5}) {
                        cpu::IvfRangeProblem p = rangeOf(data, radius);
                        p.threads = threads;
                        p.interrupt = [] {};
                        expectExact(data, p);
                    }
                }
            }
        }
    }
}

/// Queries whose errors have no bound count as repeated, as in flat searches.
TEST(TestIvfCpuRange, CountsQueriesWithoutABound) {
    IvfCpuCase c;
    c.metric = Metric::InnerProduct;
    c.nprobe = 6;
    std::vector<float> queries = uniformRows(c.q, c.d, 2);
    std::fill_n(queries.begin() + 7 * c.d, c.d, 1e38f);
    IvfCpuData data(c, uniformRows(c.n, c.d, 1), queries);
    std::fill(data.probes.begin(), data.probes.end(), idx_t(0));
    for (const int threads : {1, 3}) {
        cpu::IvfRangeProblem p = rangeOf(data, 1e30f);
        p.threads = threads;
        SearchStats stats;
        p.stats = &stats;
        cpu::runIvfRange(p);
        EXPECT_EQ(stats.certified, c.q - 1);
        EXPECT_EQ(stats.repeated, 1);
    }
}

TEST(TestIvfCpuRange, NoQueriesWithAHook) {
    IvfCpuCase c;
    const IvfCpuData data = uniformData(c);
    cpu::IvfRangeProblem p = rangeOf(data, 1.f);
    p.numQueries = 0;
    p.interrupt = [] {};
    EXPECT_EQ(cpu::runIvfRange(p).limits, std::vector<idx_t>{0});
}

TEST(TestIvfCpuRange, NamesWhatIsBad) {
    IvfCpuCase c;
    const IvfCpuData data = uniformData(c);
    const auto expect =
            [&](auto change, const char* argument, const char* value) {
                cpu::IvfRangeProblem p = rangeOf(data, 1);
                change(p);
                EXPECT_TRUE(throwsNaming(
                        [&] { cpu::runIvfRange(p); }, argument, value));
            };
    using P = cpu::IvfRangeProblem;
    expect([](P& p) { p.metric = Metric::L1; }, "metric", "");
    expect([](P& p) { p.d = 0; }, "d", "0");
    expect([](P& p) { p.numQueries = -1; }, "numQueries", "-1");
    expect([](P& p) { p.nprobe = 0; }, "nprobe", "0");
    expect([](P& p) { p.threads = -2; }, "threads", "-2");
    expect([](P& p) { p.radius = NAN; }, "radius", "nan");
    expect([](P& p) { p.lists = nullptr; }, "lists", "null");
    expect([](P& p) { p.queries = nullptr; }, "queries", "null");
    expect([](P& p) { p.probes = nullptr; }, "probes", "null");
    expect([](P& p) { p.numLists = 3; }, "probes", "there are 3 lists");
    expect([](P& p) { p.target = "none"; }, "target", "none");
}

} // namespace faiss_bits::test
