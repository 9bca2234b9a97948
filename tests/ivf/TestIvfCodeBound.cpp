/// The bound of estimates by 8-bit codes (IvfCodeBound.h), without a device:
/// products of float16 words, added up as badly as tensor cores may.

#include <random>

#include "kernels/ivf/IvfCodeBound.h"
#include "tests/ivf/EstimateBoundHarness.h"

namespace faiss_bits::test {
namespace {

/// What a list's vectors share.
struct CodedList {
    std::vector<float> starts, steps, centroid;
    std::vector<int> middle; ///< codes of its first vector

    float component(int c, int code) const {
        return float(std::fma(float(code), steps[c], starts[c])) + centroid[c];
    }
};

struct CodeBounds {
    float lower = -HUGE_VALF;
    float upper = HUGE_VALF;
    float width = HUGE_VALF;
};

/// Written from the comments of IvfCodeBound.h and IvfEstimateBound.h.
CodeBounds boundsOf(
        const CodedList& list,
        const std::vector<int>& codes,
        const std::vector<float>& query,
        const Factors& factors,
        Sums order) {
    const int d = int(codes.size());
    float mostStep = 0;
    double sizes = 0;
    for (int c = 0; c < d; ++c) {
        mostStep = std::max(mostStep, std::abs(list.steps[c]));
        const double size = std::abs(double(list.starts[c])) +
                std::abs(double(list.centroid[c])) +
                ivf_estimate::kGreatestCode * std::abs(double(list.steps[c]));
        sizes += size * size;
    }
    const float scale = ivf_estimate::scaleOfSteps(mostStep);
    const float inverse = ivf_estimate::inverseOf(scale);
    const float slack = ivf_estimate::slackOfCodes(roundedUp(sizes), inverse);
    std::vector<float> s(d);
    std::vector<double> squares(d);
    std::vector<double> products(d);
    for (int c = 0; c < d; ++c) {
        s[c] = query[c] - list.component(c, list.middle[c]);
    }
    const float ss = dotOf(s, s, order);
    if (!(ss <= ivf_estimate::kGreatest)) {
        return {};
    }
    const float ofQuery = ivf_estimate::scaleOf(ss);
    for (int c = 0; c < d; ++c) {
        const float h =
                halved(float(codes[c] - list.middle[c]) *
                       halved(list.steps[c] * scale));
        squares[c] = halved(h * h);
        products[c] = double(h) * halved(s[c] * ofQuery);
    }
    const float square = sumOf(squares, order) * inverse * inverse;
    if (!(square <= ivf_estimate::kGreatest &&
          slack <= ivf_estimate::kGreatest)) {
        return {};
    }
    const float factor = ivf_estimate::kSquaresOfCodes * factors.squares;
    const float ofVector = fmaUp(factor, square, slack);
    const float slackOfQuery =
            fmaUp(factors.squares, ss, 0.5f * ivf_estimate::kLeast);
    const float both = inverse * ivf_estimate::inverseOf(ofQuery);
    const float product = sumOf(products, order);
    const auto bound = [&](float v, float q) {
        return std::fma(-2.0f * both, product, v + q);
    };
    return {bound(roundedDown((long double)square - ofVector),
                  roundedDown((long double)ss - slackOfQuery)),
            bound(roundedUp((long double)square + ofVector),
                  roundedUp((long double)ss + slackOfQuery)),
            2 * roundedUp((long double)ofVector + slackOfQuery)};
}

TEST(IvfCodeBound, HoldsForRandomPairs) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto code = [&] { return int(random() % 256); };
    int numBounds = 0;
    double mostUsed = 0;
    for (int d : {1, 2, 3, 16, 31, 64, 100, 128}) {
        const Factors factors = ivf_estimate::factorsOfCodes(
                ivf_estimate::factorsOf(Metric::L2, d));
        for (float size : {1.0f, 1e-35f, 1e-20f, 1e-6f, 1e6f, 1e16f, 1e25f}) {
            for (float offset : {0.0f, 1.0f, 1e4f}) {
                for (int run = 0; run < 12; ++run) {
                    CodedList list;
                    std::vector<int> codes(d);
                    std::vector<float> query(d);
                    for (int c = 0; c < d; ++c) {
                        // Steps of some runs are far apart: of some components
                        // float16 has no word.
                        const float apart = run % 3 == 0
                                ? std::ldexp(1.0f, -int(random() % 30))
                                : 1;
                        list.steps.push_back(
                                run == 7 ? 0
                                         : size * apart *
                                                (1 +
                                                 float(random() % 1024) /
                                                         1024));
                        list.starts.push_back(size * offset * normal(random));
                        list.centroid.push_back(
                                run % 2 ? size * offset * normal(random) : 0);
                        list.middle.push_back(code());
                        codes[c] = run == 5 ? list.middle[c]
                                : run == 6  ? 255 - list.middle[c] / 128 * 255
                                            : code();
                        const float x = list.component(c, codes[c]);
                        query[c] = run % 4 == 1 ? x
                                : run % 4 == 2
                                ? 2 * list.component(c, list.middle[c]) - x
                                : x + 100 * size * normal(random);
                    }
                    std::vector<float> x(d);
                    for (int c = 0; c < d; ++c) {
                        x[c] = list.component(c, codes[c]);
                    }
                    const double key = canonicalDistance(
                            Metric::L2, 0, query.data(), x.data(), d);
                    for (Sums order : kSums) {
                        const CodeBounds b =
                                boundsOf(list, codes, query, factors, order);
                        const auto text = ::testing::Message()
                                << "d=" << d << " size=" << size
                                << " offset=" << offset << " run=" << run;
                        ASSERT_LE(b.lower, key) << text;
                        ASSERT_GE(b.upper, key) << text;
                        if (b.width < HUGE_VALF) {
                            ASSERT_LE(key, double(b.lower) + b.width) << text;
                            ++numBounds;
                            const double middle =
                                    (double(b.lower) + b.upper) / 2;
                            const double half = (double(b.upper) - b.lower) / 2;
                            mostUsed = std::max(
                                    mostUsed, std::abs(key - middle) / half);
                        }
                    }
                }
            }
        }
    }
    EXPECT_GT(numBounds, 7000);
    // Some come close, so that a much smaller bound would fail.
    EXPECT_GT(mostUsed, 0.2);
}

TEST(IvfCodeBound, ScalesBringStepsBelowOne) {
    for (float step : {1.0f, 0.5f, 0.75f, 1e-10f, 1e10f, 3e-18f, 1e17f}) {
        const float scaled = step * ivf_estimate::scaleOfSteps(step);
        EXPECT_GE(scaled, 0.5f) << step;
        EXPECT_LT(scaled, 1) << step;
    }
    // Scales end, and their squares are numbers.
    for (float step : {0.0f, 1e-40f, 1e-30f, 1e38f, HUGE_VALF}) {
        const float scale = ivf_estimate::scaleOfSteps(step);
        EXPECT_GE(scale, 0x1p-60f);
        EXPECT_LE(scale, 0x1p60f);
    }
}

} // namespace
} // namespace faiss_bits::test
