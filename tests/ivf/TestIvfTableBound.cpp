/// The bound of estimates by tables of whole numbers (IvfTableBound.h), without
/// a device: of two vectors the nearer one has an estimate within the limit
/// that the farther one's sets, and sums of entries have 16 bits; some come
/// close to the bound, so that a smaller one would fail.

#include "kernels/ivf/IvfTableBound.h"
#include "tests/ivf/ProductBoundHarness.h"

namespace faiss_bits::test {
namespace {

using Search = CodedSearch;

struct Estimates : CodedEstimates {
    std::vector<uint32_t> sums;
    bool isBounded = true;
};

std::vector<float> partOf(const std::vector<float>& row, int part, int dims) {
    return {row.begin() + part * dims, row.begin() + (part + 1) * dims};
}

float squareOf(const std::vector<float>& x, Sums order) {
    return dotOf(x, x, order);
}

double exactDotOf(const std::vector<float>& x, const std::vector<float>& y) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        sum = std::fma(double(x[i]), double(y[i]), sum);
    }
    return sum;
}

/// Written from the comment of IvfTableBound.h.
template <Metric kMetric>
Estimates estimatesOf(const Search& search, Sums order, bool areTerms) {
    using namespace ivf_table;
    constexpr bool kIsL2 = kMetric == Metric::L2;
    const int d = int(search.q.size());
    const int dims = d / search.parts;
    std::vector<float> s(d);
    std::vector<double> sizes(d);
    for (int i = 0; i < d; ++i) {
        s[i] = kIsL2 ? search.q[i] - search.c[i] : search.q[i];
        sizes[i] = double(std::abs(search.q[i] * search.c[i]));
    }
    std::vector<Range> ranges;
    float longest = 0, widths = 0, lows = 0;
    for (int part = 0; part < search.parts; ++part) {
        float most = 0;
        for (const auto& row : search.y) {
            const float square = squareOf(partOf(row, part, dims), order);
            most = square <= most ? most : square; // NaN, too
        }
        longest += most;
        ranges.push_back(rangeOf<kMetric>(
                normOf(squareOf(partOf(s, part, dims), order)), normOf(most)));
        widths += ranges.back().width;
        lows += ranges.back().low;
    }
    const float square = squareOf(s, order);
    const float center = squareOf(search.c, order);
    Estimates found;
    found.isBounded = isBounded(square, center, longest);
    PairNorms pair;
    pair.query = normOf(square);
    pair.centroid = normOf(center);
    pair.longest = normOf(longest);
    pair.products = kIsL2 ? 0 : sumOf(sizes, Sums::Forward) * kUp;
    pair.step = stepOf(widths, search.parts);
    if (areTerms) {
        pair.step = stepOfTerms<kMetric>(pair.step, pair);
    }
    found.bound = boundOf<kMetric>(pair, search.parts, d, areTerms);
    const float base =
            kIsL2 ? square + lows : lows - dotOf(search.c, search.q, order);
    const float inverse = 1 / pair.step;
    for (const auto& y : search.y) {
        Pair canonical{search.metric, {}, search.q, {}};
        for (int i = 0; i < d; ++i) {
            canonical.x.push_back(search.c[i] + y[i]);
        }
        found.keys.push_back(canonicalKey(canonical));
        uint32_t sum = 0;
        for (int part = 0; part < search.parts; ++part) {
            const std::vector<float> of = partOf(y, part, dims);
            const float product = dotOf(of, partOf(s, part, dims), order);
            float entry = kIsL2 ? std::fma(-2.0f, product, squareOf(of, order))
                                : -product;
            if (areTerms) {
                const double ofQuery =
                        exactDotOf(of, partOf(search.q, part, dims));
                const double ofList = exactDotOf(of, of) +
                        2 * exactDotOf(of, partOf(search.c, part, dims));
                entry = kIsL2 ? float(-2 * ofQuery) + float(ofList)
                              : float(-ofQuery);
            }
            sum += uint32_t(std::nearbyint(
                    scaledEntry(entry, ranges[part].low, inverse)));
        }
        found.sums.push_back(sum);
        found.values.push_back(std::fma(float(sum), pair.step, base));
    }
    return found;
}

Estimates estimatesOf(const Search& search, Sums order, bool areTerms = false) {
    return search.metric == Metric::L2
            ? estimatesOf<Metric::L2>(search, order, areTerms)
            : estimatesOf<Metric::InnerProduct>(search, order, areTerms);
}

/// As CodedEstimates::hold. A search without a bound fails.
testing::AssertionResult holds(
        const Search& search,
        Sums order,
        double* used = nullptr,
        float part = 1,
        bool areTerms = false) {
    const Estimates found = estimatesOf(search, order, areTerms);
    if (!found.isBounded) {
        return testing::AssertionFailure() << "no bound";
    }
    for (uint32_t sum : found.sums) {
        if (sum > uint32_t(ivf_table::kMostSum)) {
            return testing::AssertionFailure() << "sum " << sum;
        }
    }
    return found.hold(search, order, used, part);
}

TEST(IvfTableBound, EntriesAreInTheirRanges) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (int i = 0; i < 100000; ++i) {
        const int dims = 1 + i % 3;
        double s[3], y[3];
        double ofS = 0, ofY = 0, product = 0;
        const double size = std::ldexp(1.0, int(random() % 21) - 10);
        const double along = double(int(random() % 3) - 1); // or across
        for (int c = 0; c < dims; ++c) {
            s[c] = normal(random);
            y[c] = size * (along != 0 ? along * s[c] : normal(random));
            ofS += s[c] * s[c];
            ofY += y[c] * y[c];
            product += s[c] * y[c];
        }
        // Some rows are shorter than the longest.
        const double part = i % 4 == 0 ? 1 : double(random() % 1000) / 1000;
        const float normS = ivf_table::normOf(float(ofS));
        const float normY = ivf_table::normOf(float(ofY));
        const auto isIn = [](double entry, ivf_table::Range range) {
            return double(range.low) <= entry &&
                    entry <= double(range.low) + double(range.width);
        };
        EXPECT_TRUE(
                isIn(part * part * ofY - 2 * part * product,
                     ivf_table::rangeOf<Metric::L2>(normS, normY)));
        EXPECT_TRUE(
                isIn(-part * product,
                     ivf_table::rangeOf<Metric::InnerProduct>(normS, normY)));
    }
}

TEST(IvfTableBound, HoldsForRandomVectors) {
    std::mt19937 random(1);
    constexpr struct {
        int d;
        int parts;
    } kShapes[] = {
            {12, 12},
            {24, 8},
            {64, 1},
            {100, 4},
            {96, 24},
            {256, 8},
            {256, 256}};
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (const auto& shape : kShapes) {
            for (float size : {1.0f, 1e-30f, 1e-20f, 1e-6f, 1e6f, 1e12f}) {
                for (float offset : {0.0f, 1.0f, 1e4f}) {
                    const Search search = randomSearch(
                            metric, shape.d, shape.parts, size, offset, random);
                    for (Sums order :
                         {Sums::Forward, Sums::Descending, Sums::Signs}) {
                        ASSERT_TRUE(holds(search, order))
                                << "size=" << size << " offset=" << offset;
                    }
                    ASSERT_TRUE(holds(search, Sums::Forward, nullptr, 1, true))
                            << "size=" << size << " offset=" << offset;
                }
            }
        }
    }
}

/// Where squares of a query or of rows are below float32's least, and the
/// other's are not.
TEST(IvfTableBound, HoldsWhereSquaresAreNothing) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int exponent : {-100, -80, -76, -75, -74, -70}) {
            for (int ofQuery : {-80, -75, 0, 20, 50}) {
                for (bool swapped : {false, true}) {
                    const int ofRows = swapped ? ofQuery : exponent;
                    const int ofIt = swapped ? exponent : ofQuery;
                    Search search{metric, 4, {}, {}, Rows(3)};
                    for (int i = 0; i < 16; ++i) {
                        const float unit = 1 + float(i % 3) * 0x1p-12f;
                        search.q.push_back(std::ldexp(unit, ofIt));
                        search.c.push_back(0);
                        const float y = std::ldexp(1.0f, ofRows);
                        search.y[0].push_back(i % 3 ? -y : y);
                        search.y[1].push_back(i % 2 ? -y : y);
                        search.y[2].push_back(y);
                    }
                    for (bool areTerms : {false, true}) {
                        EXPECT_TRUE(holds(
                                search, Sums::Forward, nullptr, 1, areTerms))
                                << exponent << " " << ofQuery << " " << swapped;
                    }
                }
            }
        }
    }
}

/// Two vectors whose entries are rounded by almost half a step each, one up and
/// one down, of which the one that is nearer by little has the greater
/// estimate; and a third that sets the ranges.
Search hardSearch(Metric metric, int parts) {
    const bool isL2 = metric == Metric::L2;
    Search search{metric, parts, {}, {}, Rows(3)};
    const float norm = ivf_table::normOf(1);
    const auto range = isL2
            ? ivf_table::rangeOf<Metric::L2>(norm, norm)
            : ivf_table::rangeOf<Metric::InnerProduct>(norm, norm);
    float widths = 0;
    for (int part = 0; part < parts; ++part) {
        widths += range.width;
    }
    const double step = ivf_table::stepOf(widths, parts);
    // Of parts of one component, s = 1: a row whose entry is so many steps.
    const auto rowAt = [&](double steps) {
        const double entry = range.low + steps * step;
        return float(isL2 ? 1 - std::sqrt(1 + entry) : -entry);
    };
    const double middle =
            std::floor(((isL2 ? -0.75 : -0.5) - double(range.low)) / step);
    // So that the second is farther, a part of it has some whole steps more.
    const double more = std::ceil(0.02 * parts + 0.05);
    for (int part = 0; part < parts; ++part) {
        search.q.push_back(1);
        search.c.push_back(0);
        search.y[0].push_back(rowAt(middle + 0.51));
        search.y[1].push_back(rowAt(middle + 0.49 + (part == 0 ? more : 0)));
        search.y[2].push_back(1);
    }
    return search;
}

TEST(IvfTableBound, ComesCloseAndNoLessWouldDo) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int parts : {8, 16, 24, 48, 96}) {
            Search search = hardSearch(metric, parts);
            double used = 0;
            ASSERT_TRUE(holds(search, Sums::Forward, &used)) << parts;
            // Of the half step that each entry is rounded by, at both vectors.
            EXPECT_GT(used, 0.6) << parts << " " << int(metric);
            EXPECT_LE(used, 1) << parts;
            EXPECT_FALSE(holds(search, Sums::Forward, nullptr, 0.6f)) << parts;
        }
    }
}

/// Lists that are far from the origin, and queries near to them, so that terms
/// are much greater than entries.
TEST(IvfTableBound, TermsHoldFarFromTheOrigin) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (int parts : {1, 8, 24}) {
        for (float far : {1e2f, 1e4f, 1e6f, 1e8f}) {
            for (int i = 0; i < 20; ++i) {
                const int d = 12 * parts;
                Search search{Metric::L2, parts, {}, {}, Rows(40)};
                for (int c = 0; c < d; ++c) {
                    search.c.push_back(far * (1 + normal(random)));
                    search.q.push_back(search.c.back() + normal(random));
                }
                for (auto& row : search.y) {
                    for (int c = 0; c < d; ++c) {
                        row.push_back(normal(random));
                    }
                }
                ASSERT_TRUE(holds(search, Sums::Forward, nullptr, 1, true))
                        << parts << " " << far;
            }
        }
    }
}

TEST(IvfTableBound, SumsHaveSixteenBits) {
    // All entries as great as they can be.
    for (int parts : {1, 2, 8, 64, 256}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            Search search{metric, parts, {}, {}, Rows(1)};
            for (int i = 0; i < 4 * parts; ++i) {
                search.q.push_back(1);
                search.c.push_back(0);
                search.y[0].push_back(-1);
            }
            const Estimates found = estimatesOf(search, Sums::Forward);
            EXPECT_LE(found.sums[0], uint32_t(ivf_table::kMostSum)) << parts;
            EXPECT_GT(found.sums[0], 65000u) << parts;
        }
    }
}

TEST(IvfTableBound, WhatIsNoNumberHasNoEstimate) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(ivf_table::isBounded(1, 1, 1));
    for (float bad : {nan, HUGE_VALF, 0x1p121f}) {
        EXPECT_FALSE(ivf_table::isBounded(bad, 1, 1));
        EXPECT_FALSE(ivf_table::isBounded(1, bad, 1));
        EXPECT_FALSE(ivf_table::isBounded(1, 1, bad));
    }
}

} // namespace
} // namespace faiss_bits::test
