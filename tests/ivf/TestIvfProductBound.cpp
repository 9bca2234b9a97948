/// The bound of estimates of product codes (IvfProductBound.h), without a
/// device: of two vectors the nearer one has an estimate within the limit that
/// the farther one's sets, whatever order sums are formed in; and some come
/// close to it, so that a smaller bound would fail.

#include "tests/ivf/ProductBoundHarness.h"

namespace faiss_bits::test {
namespace {

using Search = CodedSearch;
using Estimates = CodedEstimates;

/// The root of the sum over parts of the greatest square of a row.
float longestOf(const Rows& rows, int partDims) {
    float sum = 0;
    for (size_t from = 0; from < rows[0].size(); from += partDims) {
        float most = 0;
        for (const auto& row : rows) {
            float square = 0;
            for (int i = 0; i < partDims; ++i) {
                square = std::fma(row[from + i], row[from + i], square);
            }
            most = std::max(most, square);
        }
        sum += most;
    }
    return sum;
}

/// Written from the comment of IvfProductBound.h.
Estimates estimatesOf(const Search& search, Sums order) {
    using namespace ivf_estimate;
    const int d = int(search.q.size());
    const bool isL2 = search.metric == Metric::L2;
    const int partDims = d / search.parts;
    const float square = longestOf(search.y, partDims);
    const float scaleY = scaleOf(square);
    Rows off = search.y;
    for (auto& row : off) {
        for (float& x : row) {
            x = x * scaleY - halved(x * scaleY);
        }
    }
    ivf_product::CodebookNorms codes;
    codes.longest = std::sqrt(square) * ivf_product::kUp;
    codes.lost = std::sqrt(longestOf(off, partDims)) * inverseOf(scaleY) *
            ivf_product::kUp;

    std::vector<float> s(d), kept(d), lost(d), sizes(d);
    for (int i = 0; i < d; ++i) {
        s[i] = isL2 ? search.q[i] - search.c[i] : search.q[i];
        sizes[i] = isL2 ? 0 : std::abs(search.q[i] * search.c[i]);
    }
    const float ss = dotOf(s, s, order);
    const float scale = scaleOf(ss);
    for (int i = 0; i < d; ++i) {
        kept[i] = halved(s[i] * scale);
        lost[i] = s[i] * scale - kept[i];
    }
    const float ofKept = dotOf(kept, kept, order);
    const float unscale = inverseOf(scale);
    const float up = ivf_product::kUp;
    ivf_product::PairNorms pair;
    pair.query = std::sqrt(ss) * up;
    pair.rounded = std::sqrt(ofKept) * unscale * up;
    pair.lost = std::sqrt(dotOf(lost, lost, order)) * unscale * up;
    pair.centroid = std::sqrt(dotOf(search.c, search.c, order)) * up;
    pair.products = sumOf(std::vector<double>(sizes.begin(), sizes.end()),
                          Sums::Forward) *
            up;

    Estimates found;
    found.bound = isL2
            ? ivf_product::boundOf<Metric::L2>(codes, pair, d)
            : ivf_product::boundOf<Metric::InnerProduct>(codes, pair, d);
    const float inverse = inverseOf(scaleY);
    for (const auto& y : search.y) {
        std::vector<double> products(d), squares(d);
        Pair canonical{search.metric, {}, search.q, {}};
        for (int i = 0; i < d; ++i) {
            const float rounded = halved(y[i] * scaleY);
            products[i] = double(rounded) * kept[i];
            squares[i] = double(rounded) * rounded;
            canonical.x.push_back(search.c[i] + y[i]);
        }
        found.keys.push_back(canonicalKey(canonical));
        const float product = sumOf(products, order);
        const float ofY = isL2 ? sumOf(squares, order) : 0;
        const float base = isL2 ? ofKept * unscale * unscale
                                : -dotOf(search.c, search.q, order);
        found.values.push_back(std::fma(
                product * (isL2 ? -2 * unscale : -unscale),
                inverse,
                base + ofY * inverse * inverse));
    }
    return found;
}

/// As CodedEstimates::hold.
testing::AssertionResult holds(
        const Search& search,
        Sums order,
        double* used = nullptr,
        float part = 1) {
    const Estimates found = estimatesOf(search, order);
    for (float value : found.values) {
        if (!std::isfinite(value)) {
            return testing::AssertionSuccess(); // it has none, nor a limit
        }
    }
    return found.hold(search, order, used, part);
}

/// Squares of the codebook's numbers are below float32's least; a query rounds
/// to float16 by more than they are apart.
TEST(IvfProductBound, HoldsForRowsWhoseSquaresAreNothing) {
    for (int exponent : {-76, -75, -74, -70}) {
        const float z = std::ldexp(1.0f, exponent);
        for (float size : {1.0f, 0x1p20f}) {
            Search search{Metric::InnerProduct, 8, {}, {}, Rows(2)};
            for (int i = 0; i < 16; ++i) {
                const float part = i >= 8 ? 0.4f : i % 2 ? 0.1f : 0.6f;
                search.q.push_back(size * (1 + part * 0x1p-10f));
                search.c.push_back(0);
                search.y[0].push_back(i < 8 ? -z : z);
                search.y[1].push_back(i < 8 ? z : -z);
            }
            for (Sums order : kSums) {
                EXPECT_TRUE(holds(search, order)) << exponent << " " << size;
            }
        }
    }
}

TEST(IvfProductBound, HoldsForRandomVectors) {
    std::mt19937 random(1);
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {16, 64, 128, 256}) {
            for (float size : {1.0f, 1e-30f, 1e-20f, 1e-6f, 1e6f, 1e15f}) {
                for (float offset : {0.0f, 1.0f, 1e4f}) {
                    const Search search = randomSearch(
                            metric,
                            d,
                            d == 64 ? d / 4 : d / 2,
                            size,
                            offset,
                            random);
                    for (Sums order : kSums) {
                        ASSERT_TRUE(holds(search, order))
                                << "size=" << size << " offset=" << offset;
                    }
                }
            }
        }
    }
}

/// What float16 rounds by half a unit, up or down, and one vector that is
/// farther by very little.
Search hardSearch(Metric metric, int d) {
    Search search{metric, d / 2, {}, std::vector<float>(d, 0), Rows(2)};
    constexpr float kUnit = 0x1p-10f;
    const float middle = 1 + 2.5f * kUnit;
    const float above = std::nextafter(middle, 2.0f);
    const float below = std::nextafter(middle, 0.0f);
    const bool isL2 = metric == Metric::L2;
    for (int i = 0; i < d; ++i) {
        search.q.push_back(isL2 ? 0.0f : 1.0f);
        search.y[0].push_back(isL2 ? above : below);
        search.y[1].push_back(isL2 ? below : above);
    }
    // L2: the first is the nearer one, and its estimate is greater.
    search.y[1][0] += isL2 ? 4 * d * 0x1p-23f : -4 * d * 0x1p-23f;
    return search;
}

TEST(IvfProductBound, HoldsForTheHardestAndNoLess) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {16, 32, 64, 128, 256}) {
            double used = 0;
            const Search search = hardSearch(metric, d);
            for (Sums order : kSums) {
                ASSERT_TRUE(holds(search, order, &used));
            }
            EXPECT_GT(used, 0.75) << d << " " << int(metric);
            EXPECT_LE(used, 1) << d;
            EXPECT_FALSE(holds(search, Sums::Forward, nullptr, 0.7f)) << d;
        }
    }
}

TEST(IvfProductBound, WhatHasNoBoundHasNoLimit) {
    ivf_product::CodebookNorms codes;
    codes.longest = std::numeric_limits<float>::quiet_NaN();
    const ivf_product::PairNorms pair;
    const auto l2 = ivf_product::boundOf<Metric::L2>(codes, pair, 16);
    EXPECT_TRUE(std::isnan(ivf_product::limitOf<Metric::L2>(1, l2)));
    const auto product =
            ivf_product::boundOf<Metric::InnerProduct>(codes, pair, 16);
    EXPECT_TRUE(
            std::isnan(ivf_product::limitOf<Metric::InnerProduct>(1, product)));
}

} // namespace
} // namespace faiss_bits::test
