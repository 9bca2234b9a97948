#pragma once

#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

/// Vectors with labels, and their sums in plain float64.
namespace faiss_bits::test {

enum class LabelOrder {
    Random,
    Equal,    ///< all in the last cluster
    Sorted,   ///< runs of the same length
    Reversed, //
    Skewed,   ///< half of all in one cluster
    Outside,  ///< some are -1, some k or more
};

inline constexpr LabelOrder kLabelOrders[] = {
        LabelOrder::Random,
        LabelOrder::Equal,
        LabelOrder::Sorted,
        LabelOrder::Reversed,
        LabelOrder::Skewed,
        LabelOrder::Outside};

struct ClusterCase {
    int64_t n = 1000;
    int d = 16;
    int64_t k = 10;
    LabelOrder order = LabelOrder::Random;
    bool weighted = false;
    bool wholeNumbers = true; ///< exact in any order of additions
    uint32_t seed = 1;
};

inline std::ostream& operator<<(std::ostream& out, const ClusterCase& c) {
    return out << "n=" << c.n << " d=" << c.d << " k=" << c.k
               << " order=" << int(c.order) << " weighted=" << c.weighted
               << " seed=" << c.seed;
}

struct ClusterInput {
    std::vector<float> vectors;
    std::vector<int64_t> labels;
    std::vector<float> weights; ///< empty unless weighted
    std::vector<float> distances;
};

inline int64_t labelOf(const ClusterCase& c, int64_t i, uint32_t random) {
    switch (c.order) {
        case LabelOrder::Equal:
            return c.k - 1;
        case LabelOrder::Sorted:
            return i * c.k / c.n;
        case LabelOrder::Reversed:
            return (c.n - 1 - i) * c.k / c.n;
        case LabelOrder::Skewed:
            return random % 2 ? c.k / 2 : random / 2 % c.k;
        case LabelOrder::Outside:
            return random % 5 == 0 ? (random % 2 ? -1 : c.k + random % 3)
                                   : random / 5 % c.k;
        case LabelOrder::Random:
            break;
    }
    return random % c.k;
}

inline ClusterInput makeInput(const ClusterCase& c) {
    std::mt19937 random(c.seed);
    std::uniform_real_distribution<float> real(-1, 1);
    const auto number = [&] {
        return c.wholeNumbers ? float(int(random() % 2001) - 1000)
                              : real(random);
    };
    ClusterInput input;
    input.vectors.resize(c.n * c.d);
    for (float& x : input.vectors) {
        x = number();
    }
    for (int64_t i = 0; i < c.n; ++i) {
        input.labels.push_back(labelOf(c, i, random()));
        input.distances.push_back(std::abs(number()));
        if (c.weighted) {
            // Zeros among them.
            input.weights.push_back(
                    c.wholeNumbers ? float(random() % 4) : real(random) + 1);
        }
    }
    return input;
}

struct ClusterReference {
    std::vector<double> sums;
    std::vector<double> weights;
    std::vector<uint64_t> counts;
    double objective = 0;
};

inline ClusterReference referenceOf(
        const ClusterCase& c,
        const ClusterInput& input) {
    ClusterReference result;
    result.sums.resize(c.k * c.d);
    result.weights.resize(c.k);
    result.counts.resize(c.k);
    for (int64_t i = 0; i < c.n; ++i) {
        const int64_t label = input.labels[i];
        if (label < 0 || label >= c.k) {
            continue;
        }
        const double weight = c.weighted ? input.weights[i] : 1;
        for (int j = 0; j < c.d; ++j) {
            result.sums[label * c.d + j] +=
                    weight * double(input.vectors[i * c.d + j]);
        }
        result.weights[label] += weight;
        result.counts[label] += 1;
        result.objective += input.distances[i];
    }
    return result;
}

} // namespace faiss_bits::test
