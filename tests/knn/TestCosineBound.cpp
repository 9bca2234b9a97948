/// The bound of cosines by images, without a device: float32 arithmetic as the
/// kernels', in other orders, against float64.

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/knn/fused/tensor/TensorScanBound.h"
#include "tests/common/HalfBits.h"

namespace faiss_bits::test {
namespace {

constexpr float kNormScale = 0x1p13f;
constexpr double kNormError = 0x1p-38;

float inverseNorm(const float* x, int d) {
    float sum = 0;
    for (int c = d - 1; c >= 0; --c) {
        sum = std::fma(x[c], x[c], sum);
    }
    return sum == 0 ? 0.0f : 1.0f / std::sqrt(sum);
}

/// What an image holds of a row.
struct HeldRow {
    std::vector<double> values;
    double norm = 0; ///< of L2's key
    double residual = 0;

    /// fused: the difference to the center is rounded once. A query's scale is
    /// its own, and its norm is not in three parts.
    HeldRow(const float* x,
            const std::vector<float>& center,
            bool fused,
            bool isQuery)
            : values(center.size()) {
        const int d = int(center.size());
        const float inverse = inverseNorm(x, d);
        std::vector<float> held(d);
        float greatest = 0;
        float squares = 0;
        for (int c = 0; c < d; ++c) {
            const float normalized = x[c] * inverse;
            held[c] = fused ? std::fma(x[c], inverse, -center[c])
                            : normalized - center[c];
            greatest = std::max(greatest, std::abs(held[c]));
            squares = std::fma(held[c], held[c], squares);
        }
        const int exponent =
                isQuery && greatest > 0 ? 8 - std::ilogb(greatest) : 8;
        const float scale = std::ldexp(1.0f, std::clamp(exponent, -18, 21));
        double off = 0;
        for (int c = 0; c < d; ++c) {
            values[c] =
                    float16Value(float16Bits(held[c] * scale)) / double(scale);
            off += (held[c] - values[c]) * (held[c] - values[c]);
        }
        residual = std::sqrt(off) + std::sqrt(double(squares)) * 0x1p-24;
        if (inverse == 0) {
            squares += 1;
        }
        if (isQuery) {
            norm = squares;
            return;
        }
        float rest = squares * kNormScale;
        EXPECT_LE(rest, 65504.0f);
        for (int i = 0; i < 3; ++i) {
            const float part = float16Value(float16Bits(rest));
            norm += double(part) / kNormScale;
            rest -= part;
        }
    }
};

/// 2 - 2 cos.
double exactKey(const float* x, const float* q, int d) {
    long double products[3] = {};
    for (int c = 0; c < d; ++c) {
        products[0] += (long double)x[c] * q[c];
        products[1] += (long double)x[c] * x[c];
        products[2] += (long double)q[c] * q[c];
    }
    const long double sizes = std::sqrt(products[1] * products[2]);
    return sizes == 0 ? 2.0 : double(2 - 2 * products[0] / sizes);
}

using Rows = std::vector<std::vector<float>>;

/// The mean of normalised rows, in float32.
std::vector<float> centerOf(const Rows& rows) {
    const int d = int(rows[0].size());
    std::vector<float> center(d);
    for (const auto& row : rows) {
        for (int c = 0; c < d; ++c) {
            center[c] += row[c] * inverseNorm(row.data(), d) / rows.size();
        }
    }
    return center;
}

/// Of all pairs: the greatest |key - exact| / bound, the greatest bound, and by
/// how much at most the scan's key is above the limit that the pair's own
/// canonical key makes (0 where all pass).
struct Bounds {
    double ratio = 0;
    double greatest = 0;
    double above = 0;
};

Bounds boundsOf(
        const Rows& vectors,
        const Rows& queries,
        const std::vector<float>& center) {
    const int d = int(center.size());
    Bounds out;
    std::vector<HeldRow> held;
    double residual = 0;
    for (size_t i = 0; i < vectors.size(); ++i) {
        held.emplace_back(vectors[i].data(), center, i % 2, false);
        residual = std::max(residual, held.back().residual);
    }
    for (size_t i = 0; i < queries.size(); ++i) {
        const HeldRow q(queries[i].data(), center, i % 3 == 0, true);
        for (size_t v = 0; v < vectors.size(); ++v) {
            double product = 0;
            for (int c = 0; c < d; ++c) {
                product += held[v].values[c] * q.values[c];
            }
            const double key = held[v].norm + q.norm - 2 * product;
            const double exact =
                    exactKey(vectors[v].data(), queries[i].data(), d);
            const double norm = std::sqrt(q.norm) * (1 + (d + 16) * 0x1p-24);
            const double bound = cosineScanError(
                    d, exact, norm, q.residual, residual, kNormError);
            const double limit = cosineScanLimit(
                    d,
                    float(exact / 2 - 1),
                    norm,
                    q.residual,
                    residual,
                    kNormError);
            out.above = std::max(out.above, key - limit);
            out.ratio = std::max(out.ratio, std::abs(key - exact) / bound);
            out.greatest = std::max(out.greatest, bound);
        }
    }
    return out;
}

Rows rowsOf(int n, int d, double offset, double spread, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(-1, 1);
    Rows rows(n, std::vector<float>(d));
    for (auto& row : rows) {
        for (float& x : row) {
            x = float(offset + spread * unit(random));
        }
    }
    return rows;
}

TEST(CosineBound, HoldsForPlainArithmetic) {
    for (int d : {1, 2, 17, 32, 128, 768}) {
        for (double offset : {0.0, 0.5, 10.0, 100.0, 1e3, 1e5}) {
            for (double size : {1.0, 1e-8, 1e10}) {
                const Rows vectors =
                        rowsOf(60, d, offset * size, 0.5 * size, 1);
                const Rows queries = rowsOf(20, d, offset, 0.5, 2);
                for (bool isCentered : {true, false}) {
                    const auto center = isCentered ? centerOf(vectors)
                                                   : std::vector<float>(d);
                    EXPECT_LE(boundsOf(vectors, queries, center).ratio, 1)
                            << "d=" << d << " offset=" << offset
                            << " size=" << size << " centered=" << isCentered;
                }
            }
        }
    }
}

TEST(CosineBound, HoldsForZeros) {
    for (double offset : {0.0, 100.0}) {
        Rows vectors = rowsOf(40, 33, offset, 1, 1);
        Rows queries = rowsOf(10, 33, offset, 1, 2);
        const auto center = centerOf(vectors);
        for (size_t i = 0; i < vectors.size(); i += 7) {
            std::fill(vectors[i].begin(), vectors[i].end(), 0.0f);
        }
        std::fill(queries[3].begin(), queries[3].end(), -0.0f);
        // And opposite ones, whose key is 4.
        for (float& x : queries[4]) {
            x = -x;
        }
        EXPECT_LE(boundsOf(vectors, queries, center).ratio, 1) << offset;
    }
}

/// Neighbours in a narrow cone are told apart: keys there are around 1.7e-5,
/// and the bound was 1e-3 without a center.
TEST(CosineBound, IsSmallForFarRows) {
    for (int d : {32, 128}) {
        const Rows vectors = rowsOf(100, d, 100.5, 0.5, 1);
        const Rows queries = rowsOf(10, d, 100.5, 0.5, 2);
        const Bounds bounds = boundsOf(vectors, queries, centerOf(vectors));
        EXPECT_LE(bounds.ratio, 1);
        EXPECT_LE(bounds.greatest, 6e-8) << "d=" << d;
    }
    const Rows vectors = rowsOf(100, 64, 0.5, 0.5, 1);
    const Rows queries = rowsOf(10, 64, 0.5, 0.5, 2);
    EXPECT_LE(boundsOf(vectors, queries, centerOf(vectors)).greatest, 0x1p-10);
}

/// What runs on the device: the limit that the k-th canonical key makes.
TEST(CosineBound, LimitPassesWhatIsAsNear) {
    for (int d : {17, 32, 128, 768}) {
        for (double offset : {0.0, 0.5, 10.0, 100.0, 1e3, 1e5}) {
            const Rows vectors = rowsOf(60, d, offset, 0.5, 1);
            Rows queries = rowsOf(10, d, offset, 0.5, 2);
            // Equal ones and opposite ones: keys of -1 and 1.
            queries.push_back(vectors[7]);
            queries.push_back(vectors[8]);
            for (float& x : queries.back()) {
                x = -2 * x;
            }
            EXPECT_LE(boundsOf(vectors, queries, centerOf(vectors)).above, 0)
                    << "d=" << d << " offset=" << offset;
        }
    }
}

/// By arithmetic alone: the limit leaves room for the error at the greatest
/// distance that a vector of that key may have.
TEST(CosineBound, LimitCountsTheRoundingOfTheKey) {
    for (int d : {17, 128, 4096}) {
        for (float key :
             {-1.0f,
              std::nextafter(-1.0f, 0.0f),
              -0.75f,
              -0.5f,
              std::nextafter(-0.5f, 0.0f),
              -1e-3f,
              0.0f,
              std::nextafter(0.5f, 0.0f),
              0.5f,
              std::nextafter(1.0f, 0.0f),
              1.0f}) {
            for (double norm : {0x1p-20, 1e-3, 0.5, 2.0}) {
                const double up = std::nextafter(key, 2.0f);
                // Cosines up to half a unit below round to this key.
                const double farthest = 2.0 + key + up;
                const double limit =
                        cosineScanLimit(d, key, norm, 1e-5, 1e-5, kNormError);
                const double error = cosineScanError(
                        d, farthest, norm, 1e-5, 1e-5, kNormError);
                EXPECT_GE(limit, farthest + error)
                        << "d=" << d << " key=" << key << " norm=" << norm;
            }
        }
    }
}

/// The terms of docs/bounds.md, with R and u as it says, counted once more:
/// data alone would not notice the small ones.
TEST(CosineBound, HasEveryTerm) {
    constexpr double u = 0x1p-24;
    for (int d : {17, 128, 4096}) {
        const double R = (d + 8) * u / (1 - (d + 8) * u);
        for (double C : {0.0, 1e-14, 1e-9, 1e-3, 0.5, 2.0, 4.0}) {
            for (double q : {0x1p-30, 1e-3, 0.5, 2.0}) {
                const double root = std::sqrt(C);
                const double x = q + root * (1 + R) + 2 * R + 2 * u * (1 + R);
                const double scan = tensorScanError(
                        Metric::L2, d, q, 1e-6, x, 1e-6, kNormError);
                const double held = 2 * R + 2 * u * (1 + R);
                EXPECT_GE(
                        cosineScanError(d, C, q, 1e-6, 1e-6, kNormError),
                        scan + 2 * R * C + held * held + 4 * u * (1 + R) * root)
                        << "d=" << d << " C=" << C << " q=" << q;
            }
        }
    }
}

TEST(CosineBound, GrowsWithTheDistance) {
    double last = 0;
    for (double distance : {-1e-9, 0.0, 1e-12, 1e-6, 1e-3, 0.5, 2.0, 4.0}) {
        const double error =
                cosineScanError(64, distance, 0.5, 1e-4, 1e-4, kNormError);
        EXPECT_GE(error, last);
        last = error;
    }
    EXPECT_EQ(cosineScanError(64, 1, INFINITY, 0, 0, 0), INFINITY);
    EXPECT_EQ(cosineScanError(64, 1, 1, INFINITY, 0, 0), INFINITY);
    EXPECT_EQ(cosineScanError(64, INFINITY, 1, 0, 0, 0), INFINITY);
    EXPECT_EQ(cosineScanError(1 << 21, 1, 1, 0, 0, 0), INFINITY);
}

} // namespace
} // namespace faiss_bits::test
