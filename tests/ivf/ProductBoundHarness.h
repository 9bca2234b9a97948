#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/ivf/IvfProductBound.h"
#include "tests/ivf/EstimateBoundHarness.h"

/// What the tests of bounds of estimates of product codes share: searches, and
/// the proof that a bound is for, of two vectors at a time.
namespace faiss_bits::test {

using Rows = std::vector<std::vector<float>>;

/// A query, a centroid, and what codes name: any rows y, whose parts are all
/// rows of the codebook.
struct CodedSearch {
    Metric metric;
    int parts = 1;
    std::vector<float> q, c;
    Rows y;
};

/// Twenty rows, with parts of other sizes, of which some are lost; some rows
/// are as near as can be, and alike.
inline CodedSearch randomSearch(
        Metric metric,
        int d,
        int parts,
        float size,
        float offset,
        std::mt19937& random) {
    std::normal_distribution<float> normal;
    CodedSearch search{metric, parts, {}, {}, Rows(20)};
    const float ofQuery = std::ldexp(1.0f, int(random() % 9));
    for (int i = 0; i < d; ++i) {
        const float middle = offset * float(1 + i % 5);
        search.c.push_back(size * (middle + normal(random)));
        search.q.push_back(size * (middle + ofQuery * normal(random)));
        const float ofPart = size * std::ldexp(1.0f, -(i % 40));
        for (auto& y : search.y) {
            y.push_back((random() % 2 ? size : ofPart) * normal(random));
        }
    }
    for (int i = 0; i < d; ++i) {
        search.y[0][i] = search.q[i] - search.c[i];
        search.y[1][i] = std::nextafter(search.y[0][i], search.y[2][i]);
        search.y[3][i] = search.y[4][i];
    }
    return search;
}

/// Of rows: keys are canonical, values estimates of them.
struct CodedEstimates {
    std::vector<double> keys;
    std::vector<float> values;
    ivf_product::Bound bound;

    /// Whether of two vectors the nearer one has an estimate within the limit
    /// that the farther one's sets. used: the part of the way to the limit that
    /// is gone, at most. part: of the bound.
    testing::AssertionResult hold(
            const CodedSearch& search,
            Sums order,
            double* used,
            float part) const {
        const ivf_product::Bound ofIt = {
                bound.root * part, bound.square * part};
        for (size_t far = 0; far < keys.size(); ++far) {
            const double from = values[far];
            const double limit = search.metric == Metric::L2
                    ? ivf_product::limitOf<Metric::L2>(values[far], ofIt)
                    : ivf_product::limitOf<Metric::InnerProduct>(
                              values[far], ofIt);
            for (size_t near = 0; near < keys.size(); ++near) {
                if (keys[near] > keys[far]) {
                    continue;
                }
                if (used && limit > from) {
                    *used = std::max(
                            *used, (values[near] - from) / (limit - from));
                }
                if (!(values[near] <= roundedUp(limit))) {
                    return testing::AssertionFailure()
                            << "keys " << keys[near] << " and " << keys[far]
                            << " have estimates " << values[near] << " and "
                            << from << ", limit " << limit
                            << "; d=" << search.q.size()
                            << " parts=" << search.parts
                            << " metric=" << int(search.metric)
                            << " sums=" << int(order);
                }
            }
        }
        return testing::AssertionSuccess();
    }
};

} // namespace faiss_bits::test
