/// The bound on which certificates rest, attacked: no approximate key of a
/// plain search lies beyond what the bound allows for its canonical distance.

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/KernelTable.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

/// Approximate and canonical keys, smallest first, of one query and n vectors,
/// and what the bound says of them.
template <class T>
class BoundCheck {
   public:
    BoundCheck(
            Metric metric,
            double p,
            int d,
            const std::vector<T>& query,
            const std::vector<T>& vectors,
            const cpu::Choice& choice)
            : metric_(metric), p_(p), d_(d), n_(vectors.size() / d) {
        problem_.metric = metric;
        problem_.metricArg = T(p);
        problem_.d = d;
        problem_.numQueries = 1;
        problem_.numVectors = problem_.k = n_;
        problem_.queries = query.data();
        problem_.vectors = vectors.data();
        problem_.choice = choice;
        problem_.mode = SearchMode::Plain;
        problem_.threads = 1;
        const bool direct = choice.variant == cpu::Variant::Direct;
        setup_ = cpu::checkProblem<T>(problem_, true);
        // As long as the vectors are, as the sweeps find it.
        for (idx_t i = 0; i < n_; ++i) {
            T square = 0;
            for (int j = 0; j < d; ++j) {
                const T x = vectors[i * d + j];
                square += x * x;
            }
            cpu::raiseTo(lengths_.largestSquare, square);
            const T scale = square == 0 ? T(0) : 1 / std::sqrt(square);
            cpu::noteLengths(
                    lengths_, setup_.metric, setup_.vectors, d, i, 1, &scale);
        }
        setup_.lengths = &lengths_;
        bound_ = std::make_unique<cpu::ErrorBound<T>>(setup_, direct);
    }

    /// The largest share of the bound that an error takes up; above 1: wrong.
    double worstShare() {
        std::vector<double> components(cpu::roundUp(d_, 8));
        cpu::CanonicalQuery query;
        query.components = components.data();
        cpu::canonicalKernelsFor<T>(setup_.metric, setup_.target)
                .prepareQuery(problem_.queries, d_, query);
        const auto result = CpuData<T>::run(problem_);
        const double sign = faiss_bits::isSimilarity(metric_) ? -1 : 1;
        std::vector<bool> returned(n_);
        double worst = 0;
        const auto look = [&](idx_t id, double approximate) {
            const T canonical = T(sign) *
                    canonicalDistance(metric_,
                                      double(T(p_)),
                                      problem_.queries,
                                      problem_.vectors + id * d_,
                                      d_);
            const double reach = bound_->reach(canonical, query);
            if (std::isnan(canonical) || !(reach < HUGE_VAL)) {
                return;
            }
            if (!(approximate <= reach)) {
                worst = HUGE_VAL;
            }
            const double room = reach - double(canonical);
            worst = std::max(worst, (approximate - canonical) / room);
        };
        for (idx_t i = 0; i < n_ && result.ids[i] >= 0; ++i) {
            returned[result.ids[i]] = true;
            look(result.ids[i], sign * result.distances[i]);
        }
        for (idx_t i = 0; i < n_; ++i) {
            if (!returned[i]) { // at NaN
                look(i, std::numeric_limits<double>::quiet_NaN());
            }
        }
        return worst;
    }

   private:
    Metric metric_;
    double p_;
    int d_;
    idx_t n_;
    cpu::KnnProblem<T> problem_;
    cpu::Setup<T> setup_;
    cpu::Lengths<T> lengths_;
    std::unique_ptr<cpu::ErrorBound<T>> bound_;
};

std::vector<cpu::Choice> arithmetics() {
    std::vector<cpu::Choice> choices = choicesOf(cpu::Variant::Buffered);
    for (const cpu::Choice& choice : choicesOf(cpu::Variant::Direct)) {
        choices.push_back(choice);
    }
    return choices;
}

class CpuBounds : public ::testing::TestWithParam<Metric> {};

TEST_P(CpuBounds, HoldForAllContents) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        double worst = 0;
        for (const Contents contents : kAllContents) {
            for (const int d : {1, 2, 7, 16, 100}) {
                for (const double p : {0.3, 1.5, 3.0, 5.1, 20.0, 70.5}) {
                    if (p > 0.3 && GetParam() != Metric::Lp) {
                        continue;
                    }
                    std::mt19937 random(d);
                    std::vector<T> query(d), vectors(60 * d);
                    fillVector(contents, true, 0, 1, d, random, query.data());
                    for (int i = 0; i < 60; ++i) {
                        fillVector(
                                contents,
                                false,
                                i,
                                60,
                                d,
                                random,
                                vectors.data() + i * d);
                    }
                    for (const cpu::Choice& choice : arithmetics()) {
                        BoundCheck<T> check(
                                GetParam(), p, d, query, vectors, choice);
                        const double share = check.worstShare();
                        ASSERT_LE(share, 1.0)
                                << nameOf(contents) << " d=" << d << " p=" << p
                                << " " << describe(choice, 1);
                        worst = std::max(worst, share);
                    }
                }
            }
        }
        RecordProperty("worstShare", std::to_string(worst));
    });
}

/// Differences that are infinite, and of which some power is not.
TEST(CpuBoundsOfPowers, HoldWhereDifferencesOverflow) {
    const int d = 3;
    std::mt19937 random(1);
    const float most = std::numeric_limits<float>::max();
    std::uniform_real_distribution<float> component(-1, 1);
    std::vector<float> query(d), vectors(60 * d);
    for (float& value : query) {
        value = most * component(random);
    }
    for (float& value : vectors) {
        value = most * component(random);
    }
    for (const double p : {0.05, 0.3, 0.5, 0.99, 1.0, 1.5}) {
        for (const cpu::Choice& choice : arithmetics()) {
            BoundCheck<float> check(Metric::Lp, p, d, query, vectors, choice);
            ASSERT_LE(check.worstShare(), 1.0)
                    << "p=" << p << " " << describe(choice, 1);
        }
    }
}

/// Climbs to vectors whose roundings all go the same way.
TEST_P(CpuBounds, HoldForVectorsMadeToBreakThem) {
    double worst = 0;
    for (const int d : {2, 8, 24, 64}) {
        for (const cpu::Choice& choice : arithmetics()) {
            std::mt19937 random(d);
            std::uniform_real_distribution<float> component(0.01f, 3.0f);
            std::vector<float> query(d), best(32 * d);
            for (float& value : query) {
                value = component(random);
            }
            for (float& value : best) {
                value = component(random);
            }
            double bestShare = 0;
            for (int step = 0; step < 60; ++step) {
                std::vector<float> tried = best;
                for (float& value : tried) {
                    if (random() % 8 == 0) {
                        value = component(random);
                    }
                }
                BoundCheck<float> check(
                        GetParam(), 1.5, d, query, tried, choice);
                const double share = check.worstShare();
                ASSERT_LE(share, 1.0) << d << " " << describe(choice, 1);
                if (share >= bestShare) {
                    bestShare = share;
                    best = tried;
                }
            }
            worst = std::max(worst, bestShare);
        }
    }
    RecordProperty("worstShare", std::to_string(worst));
    if (GetParam() == Metric::Linf) {
        // Rounded once, as the canonical distance is.
        EXPECT_EQ(worst, 0);
    } else {
        // A bound thousands of times too wide would prove little in practice.
        EXPECT_GT(worst, 1e-3);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuBounds,
        ::testing::ValuesIn(kCpuMetrics),
        ::testing::PrintToStringParamName());

} // namespace
} // namespace faiss_bits::test
