/// Certified searches on data that is hard for float32: every place and every
/// bit is the oracle's.

#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Targets.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/MetricNames.h"

namespace faiss_bits::test {
namespace {

struct DataCase {
    const char* name;
    int d;
    /// A component of a vector or a query.
    std::function<float(std::mt19937&)> component;
};

float between(std::mt19937& random, int low, int high) {
    return float(low + int(random() % uint32_t(high - low + 1)));
}

std::vector<DataCase> dataCases() {
    const float infinity = std::numeric_limits<float>::infinity();
    return {
            {"sift", 128, [](auto& r) { return between(r, 0, 218); }},
            {"terrain",
             3,
             [](auto& r) { return 10000.f / 255 * between(r, 0, 255); }},
            {"heights", 2, [](auto& r) { return between(r, 9900, 10000); }},
            {"millions",
             16,
             [](auto& r) { return 1e6f + between(r, 0, 99) / 16; }},
            {"thousands and a thousandth",
             24,
             [](auto& r) { return 1e3f + between(r, 0, 999) / 1000; }},
            {"many duplicates", 2, [](auto& r) { return between(r, 0, 2); }},
            {"all equal", 12, [](auto&) { return 0.1f; }},
            {"denormal",
             9,
             [](auto& r) { return std::ldexp(between(r, -9, 9), -149); }},
            {"squares underflow",
             10,
             [](auto& r) { return std::ldexp(between(r, -99, 99), -75); }},
            {"squares overflow",
             7,
             [](auto& r) { return std::ldexp(between(r, -99, 99), 58); }},
            {"sums overflow",
             7,
             [](auto& r) { return std::ldexp(between(r, -99, 99), 120); }},
            {"differences overflow",
             5,
             [](auto& r) { return std::ldexp(between(r, -99, 99), 121); }},
            {"of every size",
             5,
             [](auto& r) {
                 return std::ldexp(
                         between(r, -99, 99), int(between(r, -150, 120)));
             }},
            {"infinite",
             6,
             [=](auto& r) {
                 const bool none = r() % 30;
                 return none       ? between(r, -9, 9)
                         : r() % 2 ? infinity
                                   : -infinity;
             }},
            {"halfway between float32",
             4,
             [](auto& r) { return 2048 + between(r, 0, 3); }},
    };
}

class CpuCertifiedData : public ::testing::TestWithParam<Metric> {};

TEST_P(CpuCertifiedData, EveryPlace) {
    const Metric metric = GetParam();
    const int64_t n = 3000;
    for (const DataCase& data : dataCases()) {
        for (const int64_t q : {1, 3, 40}) {
            std::mt19937 random(7);
            std::vector<float> queries(q * data.d), vectors(n * data.d);
            for (float& value : vectors) {
                value = data.component(random);
            }
            for (float& value : queries) {
                value = data.component(random);
            }
            const double p = q == 1 ? 4 : q == 3 ? 1.7 : 0.5;
            for (const int64_t k : {1, 50, 500}) {
                std::vector<float> distances(q * k);
                std::vector<idx_t> ids(q * k);
                cpu::KnnProblem<float> problem;
                problem.metric = metric;
                problem.metricArg = float(p);
                problem.numQueries = q;
                problem.numVectors = n;
                problem.d = data.d;
                problem.queries = queries.data();
                problem.vectors = vectors.data();
                problem.k = k;
                problem.outDistances = distances.data();
                problem.outIds = ids.data();
                SearchStats stats;
                problem.stats = &stats;
                std::vector<std::vector<Ranked>> expected;
                for (int64_t i = 0; i < q; ++i) {
                    expected.push_back(canonicalTopK(
                            metric,
                            double(float(p)),
                            queries.data() + i * data.d,
                            vectors.data(),
                            n,
                            data.d,
                            k));
                }
                for (const std::string& target : cpu::targetNames()) {
                    problem.choice.target = target;
                    problem.threads = 1 + int(random() % 4);
                    SCOPED_TRACE(
                            ::testing::Message()
                            << data.name << " q=" << q << " k=" << k
                            << " target " << target);
                    cpu::runKnn(problem);
                    for (int64_t i = 0; i < q * k; ++i) {
                        const auto& best = expected[i / k];
                        const size_t place = size_t(i % k);
                        const bool some = place < best.size();
                        ASSERT_EQ(ids[i], some ? best[place].id : -1)
                                << "query " << i / k << " place " << place;
                        if (some) {
                            ASSERT_EQ(distances[i], float(best[place].key));
                        }
                    }
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuCertifiedData,
        ::testing::Values(
                Metric::L2,
                Metric::InnerProduct,
                Metric::Cosine,
                Metric::L1,
                Metric::Linf,
                Metric::Lp),
        ::testing::PrintToStringParamName());

} // namespace
} // namespace faiss_bits::test
