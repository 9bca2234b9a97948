#include <gtest/gtest.h>

#include "tests/common/ExpectError.h"
#include "tests/cpu/IvfCpuHarness.h"

/// runIvfKnn against the canonical distances of every vector in the lists.
namespace faiss_bits::test {

using cpu::IvfSharing;
using cpu::IvfWay;

namespace {

const IvfWay kWays[] = {
        IvfWay::Auto,
        IvfWay::Tiles,
        IvfWay::Direct,
        IvfWay::Gathered,
        IvfWay::Exact};

void expectAllWays(const IvfCpuData& data) {
    for (IvfWay way : kWays) {
        for (IvfSharing sharing : {IvfSharing::Queries, IvfSharing::Lists}) {
            for (int threads : {1, 3}) {
                cpu::IvfKnnProblem p = data.problem();
                p.choice.way = way;
                p.choice.sharing = sharing;
                p.threads = threads;
                data.expectExact(p);
                if (testing::Test::HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

} // namespace

TEST(TestIvfCpu, EveryWayAndMetric) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (idx_t k : {1, 2, 10, 100, 699, 700, 701, 3000}) {
            IvfCpuCase c;
            c.metric = metric;
            c.k = k;
            expectAllWays(uniformData(c));
        }
    }
}

TEST(TestIvfCpu, Dimensions) {
    for (int d : {1, 2, 7, 8, 15, 16, 17, 33, 128, 1537}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            IvfCpuCase c;
            c.metric = metric;
            c.d = d;
            c.n = d > 1000 ? 200 : 500;
            c.seed = d;
            expectAllWays(uniformData(c));
        }
    }
}

TEST(TestIvfCpu, NumbersOfQueries) {
    for (idx_t q : {0, 1, 2, 3, 11, 12, 13, 100, 333}) {
        IvfCpuCase c;
        c.q = q;
        c.n = 1500;
        c.nprobe = 3;
        expectAllWays(uniformData(c));
    }
}

TEST(TestIvfCpu, Probes) {
    for (idx_t nprobe : {1, 2, 12, 30}) {
        IvfCpuCase c;
        c.nprobe = nprobe;
        expectAllWays(uniformData(c));
    }
    // Nothing to search: all lists are none, or empty.
    IvfCpuCase c;
    IvfCpuData none = uniformData(c);
    std::fill(none.probes.begin(), none.probes.end(), -1);
    expectAllWays(none);
    std::fill(none.probes.begin(), none.probes.end(), 1);
    expectAllWays(none);
    // More lists than pairs, which are sorted otherwise.
    c.numLists = 4000;
    c.q = 3;
    IvfCpuData sparse = uniformData(c);
    expectAllWays(sparse);
    // No vectors at all.
    c.n = 0;
    c.numLists = 5;
    expectAllWays(uniformData(c));
}

TEST(TestIvfCpu, FiltersAndLimitsOfVectors) {
    for (bool filtered : {false, true}) {
        for (idx_t most : {0, 1, 40, 150, 5000}) {
            for (bool kept : {false, true}) {
                IvfCpuCase c;
                c.filtered = filtered;
                c.mostVectors = most;
                c.kept = kept;
                expectAllWays(uniformData(c));
            }
        }
    }
}

TEST(TestIvfCpu, PlacesInPlaceOfIds) {
    for (bool filtered : {false, true}) {
        IvfCpuCase c;
        c.givePlaces = true;
        c.filtered = filtered;
        expectAllWays(uniformData(c));
        // Equal distances: still by id.
        const std::vector<float> zeros(c.n * c.d, 0.f);
        expectAllWays(IvfCpuData(c, zeros, uniformRows(c.q, c.d, 2)));
    }
}

TEST(TestIvfCpu, HardVectors) {
    for (Hard kind : kHard) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (idx_t k : {1, 10, 100}) {
                IvfCpuCase c;
                c.metric = metric;
                c.k = k;
                c.n = 1200;
                c.d = 24;
                IvfCpuData data(
                        c,
                        makeHard(kind, c.n, c.d, 3),
                        makeHard(kind, c.q, c.d, 4));
                SCOPED_TRACE(testing::Message() << "hard " << int(kind));
                expectAllWays(data);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST(TestIvfCpu, ManyEqualDistances) {
    IvfCpuCase c;
    c.n = 2000;
    c.d = 8;
    c.k = 50;
    std::mt19937 random(8);
    std::vector<float> vectors(c.n * c.d), queries(c.q * c.d);
    for (float& value : vectors) {
        value = float(random() % 2);
    }
    for (float& value : queries) {
        value = float(random() % 2);
    }
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        c.metric = metric;
        expectAllWays(IvfCpuData(c, vectors, queries));
    }
    std::fill(vectors.begin(), vectors.end(), 3.f);
    expectAllWays(IvfCpuData(c, vectors, queries));
}

TEST(TestIvfCpu, EveryTarget) {
    for (const std::string& target : cpu::targetNames()) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            IvfCpuCase c;
            c.metric = metric;
            c.n = 1000;
            c.d = 37;
            const IvfCpuData data = uniformData(c);
            for (IvfWay way : kWays) {
                cpu::IvfKnnProblem p = data.problem();
                p.choice.way = way;
                p.choice.target = target;
                data.expectExact(p);
            }
        }
    }
}

TEST(TestIvfCpu, BlocksOfQueries) {
    for (int rows : {1, 7, 12, 500}) {
        for (IvfSharing sharing : {IvfSharing::Queries, IvfSharing::Lists}) {
            IvfCpuCase c;
            c.q = 100;
            const IvfCpuData data = uniformData(c);
            cpu::IvfKnnProblem p = data.problem();
            p.choice.queryBlock = rows;
            p.choice.sharing = sharing;
            p.threads = 2;
            data.expectExact(p);
            p.interrupt = [] {};
            data.expectExact(p);
        }
    }
}

// What the ways are for: if all queries went to the last one, or none did, the
// tests above would not see it.
TEST(TestIvfCpu, StatsSayWhichWayQueriesWent) {
    IvfCpuCase c;
    c.n = 4000;
    c.numLists = 6;
    c.nprobe = 6;
    c.d = 32;
    for (IvfWay way : {IvfWay::Tiles, IvfWay::Direct, IvfWay::Gathered}) {
        const IvfCpuData data = uniformData(c);
        cpu::IvfKnnProblem p = data.problem();
        p.choice.way = way;
        SearchStats stats;
        data.expectExact(p, &stats);
        EXPECT_GT(stats.certified, c.q / 2);
        EXPECT_EQ(c.q, stats.certified + stats.repeated);
        EXPECT_GE(stats.rescored, c.k * stats.certified / 2);
    }
    const IvfCpuData same(
            c, std::vector<float>(c.n * c.d, 2.f), uniformRows(c.q, c.d, 1));
    SearchStats stats;
    same.expectExact(same.problem(), &stats);
    EXPECT_GT(stats.repeated, c.q / 2);
}

TEST(TestIvfCpu, ThousandsOfQueriesInLongLists) {
    IvfCpuCase c;
    c.n = 30000;
    c.numLists = 8;
    c.nprobe = 2;
    c.q = 2500;
    c.d = 4;
    c.k = 20;
    const IvfCpuData data = uniformData(c);
    for (IvfSharing sharing : {IvfSharing::Queries, IvfSharing::Lists}) {
        cpu::IvfKnnProblem p = data.problem();
        p.choice.sharing = sharing;
        p.threads = 2;
        data.expectExact(p);
    }
}

TEST(TestIvfCpu, InterruptsAndErrorsOfListsEndTheSearch) {
    IvfCpuCase c;
    c.q = 100;
    const IvfCpuData data = uniformData(c);
    std::vector<float> distances(c.q * c.k);
    std::vector<idx_t> ids(c.q * c.k);
    struct Stop {};
    for (IvfWay way : kWays) {
        cpu::IvfKnnProblem p = data.problem();
        p.outDistances = distances.data();
        p.outIds = ids.data();
        p.choice.way = way;
        p.interrupt = [] { throw Stop(); };
        EXPECT_THROW(cpu::runIvfKnn(p), Stop);
        EXPECT_EQ(0, data.lists.numOpen.load());
    }
    struct Failing : TestLists {
        using TestLists::TestLists;
        const float* open(idx_t) const override {
            throw Stop();
        }
    };
    Failing failing(true);
    failing.rows = data.lists.rows;
    failing.ids = data.lists.ids;
    cpu::IvfKnnProblem p = data.problem();
    p.outDistances = distances.data();
    p.outIds = ids.data();
    p.lists = &failing;
    EXPECT_THROW(cpu::runIvfKnn(p), Stop);
}

TEST(TestIvfCpu, BadArgumentsAreNamed) {
    IvfCpuCase c;
    const IvfCpuData data = uniformData(c);
    std::vector<float> distances(c.q * c.k, 5.f);
    std::vector<idx_t> ids(c.q * c.k, 5);
    const auto expect = [&](const char* name,
                            const char* value,
                            const std::function<void(cpu::IvfKnnProblem&)>& f) {
        cpu::IvfKnnProblem p = data.problem();
        p.outDistances = distances.data();
        p.outIds = ids.data();
        f(p);
        EXPECT_TRUE(throwsNaming([&] { cpu::runIvfKnn(p); }, name, value));
    };
    using P = cpu::IvfKnnProblem;
    expect("metric", "2", [](P& p) { p.metric = Metric::L1; });
    expect("d", "0", [](P& p) { p.d = 0; });
    expect("k", "0", [](P& p) { p.k = 0; });
    expect("nprobe", "0", [](P& p) { p.nprobe = 0; });
    expect("numQueries", "-1", [](P& p) { p.numQueries = -1; });
    expect("mostVectors", "-2", [](P& p) { p.mostVectors = -2; });
    expect("threads", "-1", [](P& p) { p.threads = -1; });
    expect("queryBlock", "-1", [](P& p) { p.choice.queryBlock = -1; });
    expect("queries", "", [](P& p) { p.queries = nullptr; });
    expect("lists", "", [](P& p) { p.lists = nullptr; });
    expect("probes", "", [](P& p) { p.probes = nullptr; });
    expect("outDistances", "", [](P& p) { p.outDistances = nullptr; });
    expect("outIds", "", [](P& p) { p.outIds = nullptr; });
    expect("probes", "12", [&](P& p) {
        static std::vector<idx_t> bad;
        bad = data.probes;
        bad[7] = 12;
        p.probes = bad.data();
    });
    expect("target", "AVX9", [](P& p) { p.choice.target = "AVX9"; });
    EXPECT_EQ(c.q * c.k, std::count(ids.begin(), ids.end(), 5));
    // No query: nothing else is read.
    cpu::IvfKnnProblem none = data.problem();
    none.numQueries = 0;
    none.queries = nullptr;
    none.probes = nullptr;
    EXPECT_NO_THROW(cpu::runIvfKnn(none));
}

} // namespace faiss_bits::test
