/// The error bounds of the metrics, without a device: float32 arithmetic as the
/// kernels', in other orders, stays within them; and they say so where nothing
/// is known.

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "kernels/knn/ErrorBound.h"
#include "tests/common/MetricNames.h"
#include "tests/knn/MetricReference.h"

namespace faiss_bits::test {
namespace {

/// Plain float32 arithmetic for components that are not below 0, the sum from
/// the last component to the first: no bound may rest on an order.
float plainDistance(
        Metric metric,
        float p,
        const float* x,
        const float* q,
        int d) {
    float first = 0;
    float second = 0;
    for (int i = d - 1; i >= 0; --i) {
        const float t = std::abs(x[i] - q[i]);
        const float both = x[i] + q[i];
        switch (metric) {
            case Metric::L1:
                first += t;
                break;
            case Metric::Linf:
                first = std::max(first, t);
                break;
            case Metric::Lp:
                first += std::exp2(p * std::log2(t));
                break;
            case Metric::Canberra:
                first += both == 0 ? 0 : t / both;
                break;
            case Metric::BrayCurtis:
                first += t;
                second += both;
                break;
            case Metric::Jaccard:
                first += std::min(x[i], q[i]);
                second += both;
                break;
            default: { // Jensen-Shannon
                const float log = std::log2(std::max(both, 0x1p-120f));
                const auto term = [&](float a) {
                    return a == 0 ? 0 : a * ((std::log2(a) + 1.0f) - log);
                };
                first += term(x[i]) + term(q[i]);
            }
        }
    }
    switch (metric) {
        case Metric::BrayCurtis:
            return first / second;
        case Metric::Jaccard:
            return first / (second - first);
        case Metric::JensenShannon:
            return first * 0x1.62e430p-2f;
        default:
            return first;
    }
}

const std::vector<std::pair<Metric, float>> kBounded = {
        {Metric::L1, 0.f},
        {Metric::Linf, 0.f},
        {Metric::Lp, 0.3f},
        {Metric::Lp, 2.5f},
        {Metric::Lp, 7.f},
        {Metric::Canberra, 0.f},
        {Metric::BrayCurtis, 0.f},
        {Metric::Jaccard, 0.f},
        {Metric::JensenShannon, 0.f}};

TEST(ErrorBound, HoldsForPlainArithmetic) {
    std::mt19937 random(1);
    for (const auto& [metric, p] : kBounded) {
        for (int d : {1, 2, 10, 128, 3000}) {
            for (double scale : {1.0, 1e-6, 1e6}) {
                std::vector<float> x(d);
                std::vector<float> q(d);
                for (int run = 0; run < 40; ++run) {
                    std::uniform_real_distribution<double> unit(0, 1);
                    for (int i = 0; i < d; ++i) {
                        x[i] = random() % 5 ? float(scale * unit(random)) : 0;
                        q[i] = run % 2 ? x[i] * float(1 + 1e-4 * unit(random))
                                       : float(scale * unit(random));
                    }
                    const double c =
                            referenceDistance(metric, p, x.data(), q.data(), d);
                    const double a =
                            plainDistance(metric, p, x.data(), q.data(), d);
                    if (!std::isfinite(a)) {
                        continue; // nothing is said
                    }
                    const ErrorBound bound = errorBound(
                            metric,
                            p,
                            d,
                            sumOfSizes(x.data(), d),
                            sumOfSizes(q.data(), d));
                    ASSERT_LE(
                            std::abs(a - c),
                            bound.relative * std::abs(c) + bound.absolute)
                            << metricName(metric) << " p=" << p << " d=" << d
                            << " scale=" << scale << " a=" << a << " c=" << c;
                }
            }
        }
    }
}

/// Usual vectors: small enough to tell neighbours apart.
TEST(ErrorBound, IsSmall) {
    for (const auto& [metric, p] : kBounded) {
        const ErrorBound bound = errorBound(metric, p, 128, 1, 1);
        EXPECT_GT(bound.relative, 0) << metricName(metric);
        EXPECT_LT(bound.relative, 2e-4) << metricName(metric) << " " << p;
        EXPECT_LT(bound.absolute, 1e-4) << metricName(metric) << " " << p;
    }
    const ErrorBound cosine = errorBound(Metric::Cosine, 0, 128);
    EXPECT_LT(cosine.absolute, 5e-5);
}

/// The same for every p that has a kernel of its own as for its neighbours.
TEST(ErrorBound, PowersAgree) {
    for (float p : {0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f}) {
        const ErrorBound own = errorBound(Metric::Lp, p, 100);
        const ErrorBound any = errorBound(Metric::Lp, p + 0.01f, 100);
        EXPECT_LT(own.relative, any.relative) << p;
    }
    EXPECT_EQ(
            errorBound(Metric::Lp, 1, 77).relative,
            errorBound(Metric::L1, 0, 77).relative);
}

TEST(ErrorBound, IsInfiniteWhereNothingIsKnown) {
    EXPECT_TRUE(std::isinf(errorBound(Metric::L1, 0, 1 << 24).relative));
    EXPECT_TRUE(std::isinf(errorBound(Metric::Lp, 1e6f, 8).relative));
    const double inf = INFINITY;
    EXPECT_TRUE(std::isinf(
            errorBound(Metric::JensenShannon, 0, 8, inf, 1).absolute));
    EXPECT_TRUE(std::isinf(
            errorBound(Metric::JensenShannon, 0, 8, NAN, 1).absolute));
    // Methods by products have bounds of their own.
    EXPECT_TRUE(std::isinf(errorBound(Metric::L2, 0, 8).relative));
}

/// More components, and larger sums, never make it smaller.
TEST(ErrorBound, Grows) {
    for (const auto& [metric, p] : kBounded) {
        ErrorBound last;
        for (int d = 1; d < 5000; d += d / 3 + 1) {
            const ErrorBound bound = errorBound(metric, p, d, 1, 1);
            EXPECT_GE(bound.relative, last.relative) << metricName(metric);
            EXPECT_GE(bound.absolute, last.absolute) << metricName(metric);
            last = bound;
        }
    }
    for (int d : {1, 2, 3, 100}) {
        double last = 0;
        for (double sum = 1e-9; sum < 1e9; sum *= 1.3) {
            const double bound =
                    errorBound(Metric::JensenShannon, 0, d, sum, 0).absolute;
            EXPECT_GE(bound, last) << "d=" << d << " sum=" << sum;
            last = bound;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
