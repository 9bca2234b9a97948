/// A scan in float16, as tensor cores have it, without a device: rows and sums
/// that cut bits off, and how far canonical distances in float64 are from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/canonical/Distance.h"
#include "kernels/knn/fused/KeyReach.h"
#include "kernels/knn/fused/tensor/TensorScanBound.h"
#include "tests/common/HalfBits.h"

namespace faiss_bits::test {

/// RowBound of images.
struct ImageBound {
    Metric metric = Metric::L2;
    int d = 0;
    double norm = 0;
    double residual = 0;
    double greatest = 0;
    double imageResidual = 0;
    double normError = 0;
    double centerError = 0; // of the center's product with the query

    double at(double c) const {
        const double size = std::fabs(c);
        const double x = metric == Metric::InnerProduct
                ? greatest
                : norm + std::sqrt(size);
        return size * 0x1p-22 + 0x1p-146 + centerError +
                tensorScanError(
                        metric, d, norm, residual, x, imageResidual, normError);
    }
};

using Rows = std::vector<std::vector<float>>;
using Row = std::vector<double>;

/// A row in float16 under a scale, a power of two.
struct HeldRow {
    std::vector<double> values;
    double residual = 0;
    float norm = 0; // squared

    HeldRow(const Row& row, double scale) {
        double off = 0;
        for (double x : row) {
            const double held =
                    float16Value(float16Bits(float(x * scale))) / scale;
            values.push_back(held);
            off += (x - held) * (x - held);
            norm = std::fma(float(x), float(x), norm);
        }
        residual = std::sqrt(off) * (1 + 1e-12);
    }
};

/// So that the greatest component is below 2^8.
inline double scaleFor(const std::vector<Row>& rows) {
    double greatest = 0;
    for (const auto& row : rows) {
        for (double x : row) {
            greatest = std::max(greatest, std::abs(x));
        }
    }
    return greatest == 0 ? 1.0 : std::ldexp(1.0, 7 - std::ilogb(greatest));
}

/// Adds up to 16 numbers to a sum: all are cut to 24 bits of the largest.
inline double addStep(double sum, const double* terms, int count) {
    double greatest = std::fabs(sum);
    for (int i = 0; i < count; ++i) {
        greatest = std::max(greatest, std::fabs(terms[i]));
    }
    if (greatest == 0) {
        return 0;
    }
    const double unit = std::ldexp(1.0, std::ilogb(greatest) - 23);
    double total = std::trunc(sum / unit);
    for (int i = 0; i < count; ++i) {
        total += std::trunc(terms[i] / unit);
    }
    total *= unit;
    const double last = total == 0
            ? unit
            : std::ldexp(1.0, std::max(std::ilogb(total), -1000) - 23);
    return std::trunc(total / last) * last;
}

/// Norms of vectors as three float16 numbers under a scale; their sum.
inline double heldNorm(float norm, double scale) {
    float rest = float(norm * scale);
    double held = 0;
    for (int i = 0; i < 3; ++i) {
        const float part = float16Value(float16Bits(rest));
        held += part;
        rest -= part;
    }
    return held / scale;
}

inline double canonicalKey(
        Metric metric,
        const std::vector<float>& x,
        const std::vector<float>& q) {
    double slots[canonical::kSlots] = {};
    for (size_t i = 0; i < x.size(); ++i) {
        double* slot = slots + i % canonical::kSlots;
        if (metric == Metric::L2) {
            canonical::Terms<Metric::L2>::add(slot, x[i], q[i], {});
        } else {
            canonical::Terms<Metric::InnerProduct>::add(slot, x[i], q[i], {});
        }
    }
    const double* s = slots;
    const double sum =
            ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    return float(metric == Metric::L2 ? sum : -sum);
}

/// Of all pairs.
struct Counted {
    int64_t pairs = 0;
    int64_t beyondKey = 0; ///< whose canonical key is beyond the scan's
    int64_t endless = 0;   ///< that nothing is known of
    double closest = 0;    ///< the greatest (c - key) / (reach - key)
    double widest = 0;     ///< the greatest (reach - key) / at(key)
};

/// `center`: that of inner products, whose images hold what vectors differ from
/// it by; its product with a query is too large by the share `off` of its size.
inline Counted countPairs(
        Metric metric,
        const Rows& vectors,
        const Rows& queries,
        const std::vector<float>& center = {},
        double off = 0) {
    const int d = int(vectors[0].size());
    std::vector<Row> rows;
    for (const auto& row : vectors) {
        rows.emplace_back(row.begin(), row.end());
        for (size_t i = 0; i < center.size(); ++i) {
            rows.back()[i] -= double(center[i]);
        }
    }
    const double scale = scaleFor(rows);
    std::vector<HeldRow> held;
    ImageBound bound;
    bound.metric = metric;
    bound.d = d;
    float greatestNorm = 0;
    for (const auto& row : rows) {
        held.emplace_back(row, scale);
        bound.imageResidual =
                std::max(bound.imageResidual, held.back().residual);
        greatestNorm = std::max(greatestNorm, held.back().norm);
    }
    bound.greatest = std::sqrt(double(greatestNorm)) * (1 + d * 0x1p-24);
    const double normScale = greatestNorm == 0
            ? 1.0
            : std::ldexp(1.0, 14 - std::ilogb(greatestNorm));
    std::vector<double> norms;
    for (const HeldRow& row : held) {
        norms.push_back(heldNorm(row.norm, normScale));
        bound.normError = std::max(
                bound.normError, std::fabs(norms.back() - double(row.norm)));
    }
    Counted counted;
    for (const auto& query : queries) {
        const Row exactly(query.begin(), query.end());
        const HeldRow q(exactly, scaleFor({exactly}));
        double ofCenter = 0;
        for (size_t i = 0; i < center.size(); ++i) {
            ofCenter += double(center[i]) * exactly[i];
        }
        // And what the sum above is off by.
        bound.centerError = std::fabs(ofCenter) * off * (1 + 1e-9);
        ofCenter += std::fabs(ofCenter) * off;
        bound.norm =
                std::sqrt(double(q.norm) + 0x1p-120) * (1 + (d + 16) * 0x1p-24);
        bound.residual = q.residual;
        for (size_t v = 0; v < vectors.size(); ++v) {
            double sum = 0;
            std::vector<double> terms(d);
            for (int i = 0; i < d; ++i) {
                terms[i] = held[v].values[i] * q.values[i];
            }
            for (int i = 0; i < d; i += 16) {
                sum = addStep(sum, &terms[i], std::min(16, d - i));
            }
            double key = -sum - ofCenter;
            if (metric == Metric::L2) {
                const double half = -0.5 * norms[v];
                key = std::max(
                        double(q.norm) - 2 * addStep(sum, &half, 1), 0.0);
            }
            const double c = canonicalKey(metric, vectors[v], query);
            const double reach = reachOfKey(key, bound);
            ++counted.pairs;
            counted.beyondKey += c > key;
            EXPECT_LE(c, reach) << "vector " << v << ", key " << key;
            if (std::isinf(reach)) {
                ++counted.endless;
                continue;
            }
            counted.closest =
                    std::max(counted.closest, (c - key) / (reach - key));
            counted.widest =
                    std::max(counted.widest, (reach - key) / bound.at(key));
        }
    }
    return counted;
}

} // namespace faiss_bits::test
