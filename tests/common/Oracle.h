#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

/// The answers that the kernels are held against: plain CPU code in double,
/// written from the contract alone. It shares no code with any kernel.
namespace faiss_bits::test {

/// A key and its id, or a distance and its vector's number.
struct Ranked {
    double key = 0;
    int64_t id = -1;
};

inline bool operator==(const Ranked& a, const Ranked& b) {
    const bool sameKey =
            a.key == b.key || (std::isnan(a.key) && std::isnan(b.key));
    return sameKey && a.id == b.id;
}

/// The order of every result: best key first, NaN behind every number, equal
/// keys (-0 and +0 are equal, and so are all NaN) by the lower id.
inline bool ranksBefore(const Ranked& a, const Ranked& b, bool largest) {
    const bool aIsNan = std::isnan(a.key);
    const bool bIsNan = std::isnan(b.key);
    if (aIsNan != bIsNan) {
        return bIsNan;
    }
    if (!aIsNan && a.key != b.key) {
        return largest ? a.key > b.key : a.key < b.key;
    }
    return a.id < b.id;
}

/// The min(k, candidates.size()) best candidates, best first.
inline std::vector<Ranked> topK(
        std::vector<Ranked> candidates,
        int64_t k,
        bool largest) {
    const int64_t count = std::min<int64_t>(k, candidates.size());
    const auto end = candidates.begin() + count;
    const auto before = [largest](const Ranked& a, const Ranked& b) {
        return ranksBefore(a, b, largest);
    };
    std::nth_element(candidates.begin(), end, candidates.end(), before);
    std::sort(candidates.begin(), end, before);
    candidates.resize(count);
    return candidates;
}

/// topK of one row of keys: equal keys by the lower column. ids is nullptr or
/// as long as the row, and names the columns only. dropNan: NaN is no
/// candidate.
template <class T>
std::vector<Ranked> topKOfRow(
        const T* keys,
        int64_t cols,
        const int64_t* ids,
        int64_t idOffset,
        int64_t k,
        bool largest,
        bool dropNan = false) {
    std::vector<Ranked> candidates;
    candidates.reserve(cols);
    for (int64_t c = 0; c < cols; ++c) {
        if (!dropNan || !std::isnan(double(keys[c]))) {
            candidates.push_back({double(keys[c]), c});
        }
    }
    std::vector<Ranked> best = topK(std::move(candidates), k, largest);
    for (Ranked& one : best) {
        one.id = ids ? ids[one.id] : one.id + idOffset;
    }
    return best;
}

/// Squared L2 distance of two vectors of d components.
inline double squaredL2(const float* a, const float* b, int d) {
    double sum = 0;
    for (int i = 0; i < d; ++i) {
        const double difference = double(a[i]) - double(b[i]);
        sum += difference * difference;
    }
    return sum;
}

inline double innerProduct(const float* a, const float* b, int d) {
    double sum = 0;
    for (int i = 0; i < d; ++i) {
        sum += double(a[i]) * double(b[i]);
    }
    return sum;
}

/// Distances of one query [d] to n row-major vectors [n, d].
inline std::vector<double> distancesToAll(
        const float* query,
        const float* vectors,
        int64_t n,
        int d,
        bool isInnerProduct) {
    std::vector<double> distances(n);
    for (int64_t i = 0; i < n; ++i) {
        const float* vector = vectors + i * d;
        distances[i] = isInnerProduct ? innerProduct(query, vector, d)
                                      : squaredL2(query, vector, d);
    }
    return distances;
}

/// An upper bound on the rounding error of one fp32 distance, whatever the
/// order of summation and with or without fused multiply-add:
///
///   inner product   gamma(d) sum |x_i q_i|
///   L2, direct      gamma(d + 2) sum (x_i - q_i)^2
///   L2, expanded    gamma(d + 4) (|x|^2 + 2 sum |x_i q_i| + |q|^2)
///
/// with gamma(m) = m u / (1 - m u), u = 2^-24 (Higham 2002, lemma 3.1). The
/// expanded bound covers the direct one, so one bound serves both. The last
/// term covers products that underflow.
inline double fp32DistanceError(
        const float* query,
        const float* vector,
        int d,
        bool isInnerProduct) {
    double products = 0;
    double norms = 0;
    for (int i = 0; i < d; ++i) {
        const double q = query[i];
        const double x = vector[i];
        products += std::abs(x * q);
        norms += x * x + q * q;
    }
    const double m = d + 4;
    const double unit = std::ldexp(1.0, -24);
    const double gamma = m * unit / (1 - m * unit);
    const double size = isInnerProduct ? products : norms + 2 * products;
    return gamma * size + m * std::ldexp(1.0, -126);
}

} // namespace faiss_bits::test
