/// Searches by 16-bit integers: the bounds of what rounding leaves hold.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/Run.h"
#include "kernels/cpu/SearchPlan.h"
#include "tests/cpu/Int16Choices.h"

namespace faiss_bits::test {
namespace {

class CpuInt16Bounds : public ::testing::TestWithParam<Metric> {};

/// Approximate keys of all pairs, and what the bounds say of them.
class KeyCheck {
   public:
    /// Returns the largest share of the bound that an error takes up; above 1,
    /// or infinite: it is wrong. `known`: pairs of which a bound is known.
    static double worstShare(
            Metric metric,
            const CpuRows<float>& queries,
            const CpuRows<float>& vectors,
            int d,
            const cpu::Choice& choice,
            idx_t& known) {
        cpu::KnnProblem<float> problem;
        problem.metric = metric;
        problem.d = d;
        problem.queries = queries.values.data();
        problem.numQueries = queries.count;
        problem.vectors = vectors.values.data();
        problem.numVectors = problem.k = vectors.count;
        problem.choice = choice;
        std::vector<float> keys(queries.count * vectors.count);
        std::vector<idx_t> ids(keys.size());
        problem.outDistances = keys.data();
        problem.outIds = ids.data();
        cpu::Setup<float> setup = cpu::checkProblem(problem, false);
        cpu::Lengths<float> lengths;
        setup.lengths = &lengths;
        cpu::sweepByInt16(setup);
        const cpu::Plan plan =
                cpu::planSearch(setup, problem, problem.k, false);
        const cpu::KnnOutput<float> out = {
                keys.data(), ids.data(), problem.k, nullptr};
        cpu::runSweep<float>(setup, plan, problem.k, out, nullptr);
        const cpu::ErrorBound<float> bound(setup, false);
        const double sign = faiss_bits::isSimilarity(metric) ? -1 : 1;
        double worst = 0;
        std::vector<double> components(cpu::roundUp(d, 8));
        for (idx_t i = 0; i < queries.count; ++i) {
            cpu::CanonicalQuery query;
            query.components = components.data();
            cpu::canonicalKernelsFor<float>(setup.metric, setup.target)
                    .prepareQuery(queries.row(i), d, query);
            query.rounding = setup.int16.roundingOf(queries.row(i), d);
            std::vector<double> found(
                    vectors.count, std::numeric_limits<double>::quiet_NaN());
            for (idx_t j = 0; j < vectors.count; ++j) {
                const idx_t place = i * vectors.count + j;
                if (ids[place] >= 0) {
                    found[ids[place]] = sign * keys[place];
                }
            }
            for (idx_t v = 0; v < vectors.count; ++v) {
                const float canonical =
                        float(sign) *
                        canonicalDistance(
                                metric, 2.0, queries.row(i), vectors.row(v), d);
                const double reach = bound.reach(canonical, query);
                if (std::isnan(canonical) || !(reach < HUGE_VAL)) {
                    continue;
                }
                ++known;
                if (!(found[v] <= reach)) {
                    return HUGE_VAL;
                }
                worst = std::max(
                        worst,
                        (found[v] - canonical) / (reach - double(canonical)));
            }
        }
        return worst;
    }
};

CpuRows<float> rowsOf(
        int count,
        int d,
        const std::function<float(int row, int p)>& component) {
    CpuRows<float> rows;
    rows.count = count;
    rows.stride = d;
    for (int i = 0; i < count; ++i) {
        for (int p = 0; p < d; ++p) {
            rows.values.push_back(component(i, p));
        }
    }
    return rows;
}

TEST_P(CpuInt16Bounds, HoldForAllContents) {
    double worst = 0;
    for (const Contents contents : kAllContents) {
        idx_t known = 0;
        for (const int d : {1, 2, 7, 16, 65, 300, 3100}) {
            CpuCase c;
            c.metric = GetParam();
            c.contents = contents;
            c.q = 15;
            c.n = 70;
            c.d = d;
            const CpuData<float> data(c);
            for (const cpu::Choice& choice :
                 int16ChoicesOf(cpu::Variant::Buffered)) {
                const double share = KeyCheck::worstShare(
                        c.metric,
                        data.queries(),
                        data.vectors(),
                        d,
                        choice,
                        known);
                ASSERT_LE(share, 1.0)
                        << c.describe() << " " << describe(choice, 1);
                worst = std::max(worst, share);
            }
        }
        // Of some contents nothing is known: the next sweep is for them.
        const bool none = contents == Contents::Huge ||
                contents == Contents::Denormal ||
                contents == Contents::Infinite || contents == Contents::Mixed;
        EXPECT_TRUE(known > 0 || none || int16ChoicesOf({}).empty())
                << nameOf(contents);
    }
    RecordProperty("worstShare", std::to_string(worst));
}

/// Components half way between integers, all rounded the same way; rows whose
/// integers are as long as they may be, and parallel, so that sums are largest;
/// one component that is all of a row, and one beside thousands of small ones.
TEST_P(CpuInt16Bounds, HoldForRowsMadeToBreakThem) {
    using Component = std::function<float(int, int)>;
    const Component components[] = {
            [](int i, int p) { return p ? 1.0f + 0x1p-13f : 1.0f + i; },
            [](int i, int p) { return (p + i) % 2 ? 1.49998f : -1.50001f; },
            [](int, int) { return 1.9999f; },
            [](int i, int) { return 1 + 0.0137f * float(i); },
            [](int i, int p) { return p ? 0.0f : 32767.49f + float(i); },
            [](int i, int p) { return p ? 0.013f : 1000.0f * float(i); },
            [](int i, int p) { return p == i ? 1e6f : 0.37f; },
            [](int i, int p) { return std::ldexp(1.37f, -(p % 40) - i); },
            [](int i, int) { return std::ldexp(1.1f, i * 4 - 40); },
    };
    for (size_t c = 0; c < std::size(components); ++c) {
        for (const int d : {1, 2, 3, 4, 8, 31, 256, 2049}) {
            const CpuRows<float> rows = rowsOf(20, d, components[c]);
            const CpuRows<float> others = rowsOf(30, d, [&](int i, int p) {
                const float x = components[c](i % 20, p);
                return i < 20 ? -x : 1.25f * x;
            });
            for (const cpu::Choice& choice :
                 int16ChoicesOf(cpu::Variant::Buffered)) {
                for (const auto* vectors : {&rows, &others}) {
                    idx_t known = 0;
                    const double share = KeyCheck::worstShare(
                            GetParam(), rows, *vectors, d, choice, known);
                    ASSERT_LE(share, 1.0)
                            << c << " d=" << d << " " << describe(choice, 1);
                    EXPECT_GT(known, 0) << c << " d=" << d;
                }
            }
        }
    }
}

/// Rows of small integers stay as they are: nothing is left to doubt.
TEST_P(CpuInt16Bounds, SmallIntegersAreExact) {
    std::mt19937 random(3);
    const auto below256 = [&](int, int) { return float(random() % 256); };
    const int d = 128;
    const CpuRows<float> rows = rowsOf(40, d, below256);
    for (const cpu::Choice& choice : int16ChoicesOf(cpu::Variant::Buffered)) {
        const auto kernels = cpu::int16KernelsFor(cpu::targetOf(choice.target));
        for (idx_t i = 0; i < rows.count; ++i) {
            EXPECT_LE(kernels.roundingOf(rows.row(i), d), 1e-8);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuInt16Bounds,
        ::testing::Values(Metric::L2, Metric::InnerProduct),
        ::testing::PrintToStringParamName());

} // namespace
} // namespace faiss_bits::test
