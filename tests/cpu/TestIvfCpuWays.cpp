#include <gtest/gtest.h>

#include "tests/cpu/IvfCpuHarness.h"

/// runIvfKnn at the edges of what it chooses itself.
namespace faiss_bits::test {

using cpu::IvfWay;

// Whether lists are packed, scanned one by one or scanned together is chosen by
// their length, their queries and d: both sides of each edge.
TEST(TestIvfCpuWays, EdgesOfTheWays) {
    const auto expect =
            [](idx_t columns, double queries, int d, bool filtered) {
                IvfCpuCase c;
                c.numLists = 30;
                c.n = columns * c.numLists;
                c.nprobe = 6;
                c.q = std::max<idx_t>(
                        1, idx_t(queries * c.numLists / c.nprobe));
                c.d = d;
                c.k = 7;
                c.seed = uint32_t(columns);
                IvfCpuData data = uniformData(c);
                // Lists of one length, as the choice goes by the mean.
                const std::vector<float> rows = uniformRows(c.n, d, 5);
                for (idx_t list = 0; list < c.numLists; ++list) {
                    const float* from = rows.data() + list * columns * d;
                    data.lists.rows[list].assign(from, from + columns * d);
                    data.lists.ids[list].resize(columns);
                    data.allowed[list].resize(columns);
                    for (idx_t i = 0; i < columns; ++i) {
                        data.lists.ids[list][i] = (i * 31 + list * 7) % 1009;
                        data.allowed[list][i] = i;
                    }
                    data.allowedPlaces[list] = data.allowed[list];
                }
                for (int threads : {1, 2}) {
                    cpu::IvfKnnProblem p = data.problem();
                    p.allowed = filtered ? data.allowedPlaces.data() : nullptr;
                    p.threads = threads;
                    data.expectExact(p);
                }
            };
    for (idx_t columns : {1, 8, 9, 24, 25, 48, 49, 64, 65}) {
        for (double queries : {0.2, 2.0, 2.2, 4.0, 6.0, 7.0, 12.2}) {
            for (int d : {5, 47, 48, 63, 64}) {
                expect(columns, queries, d, false);
                expect(columns, queries, d, true);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

// Rows that are taken to be in a cache are read in another way.
TEST(TestIvfCpuWays, NearAndFarLists) {
    for (const std::string& target : cpu::targetNames()) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int d : {3, 20, 40, 100, 513}) {
                for (idx_t bytes : {1 << 20, 3 << 20}) {
                    IvfCpuCase c;
                    c.metric = metric;
                    c.d = d;
                    c.n = bytes / 4 / d;
                    c.numLists = 40;
                    c.q = 2;
                    c.nprobe = 2;
                    const IvfCpuData data = uniformData(c);
                    cpu::IvfKnnProblem p = data.problem();
                    p.choice.target = target;
                    for (IvfWay way : {IvfWay::Direct, IvfWay::Gathered}) {
                        p.choice.way = way;
                        data.expectExact(p);
                    }
                }
            }
        }
    }
}

// Exact searches leave out what float32 proves to be too far, in pieces.
TEST(TestIvfCpuWays, ExactSearchesOfTies) {
    for (idx_t columns : {31, 32, 33, 511, 512, 513, 1100}) {
        for (idx_t k : {1, 3, 90, 600}) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                IvfCpuCase c;
                c.metric = metric;
                c.numLists = 3;
                c.n = 3 * columns;
                c.d = 2;
                c.k = k;
                c.q = 9;
                std::mt19937 random(5);
                std::vector<float> vectors(c.n * c.d), queries(c.q * c.d);
                for (float& value : vectors) {
                    value = float(random() % 3);
                }
                for (float& value : queries) {
                    value = float(random() % 3);
                }
                const IvfCpuData data(c, vectors, queries);
                for (IvfWay way : {IvfWay::Auto, IvfWay::Exact}) {
                    cpu::IvfKnnProblem p = data.problem();
                    p.choice.way = way;
                    data.expectExact(p);
                }
            }
        }
    }
}

} // namespace faiss_bits::test
