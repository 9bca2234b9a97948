#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/common/SearchMode.h"
#include "kernels/cpu/Choice.h"
#include "tests/common/MetricNames.h"

/// Cases of the search on the CPU, and the vectors to fill them with.
namespace faiss_bits::test {

inline const std::vector<Metric> kCpuMetrics = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine,
        Metric::L1,
        Metric::Linf,
        Metric::Lp};

/// Metrics whose distances are canonical in every mode.
inline const std::vector<Metric> kAlwaysCanonical = {
        Metric::Canberra,
        Metric::BrayCurtis,
        Metric::JensenShannon,
        Metric::Jaccard};

inline std::vector<Metric> allMetrics() {
    std::vector<Metric> metrics = kCpuMetrics;
    metrics.insert(
            metrics.end(), kAlwaysCanonical.begin(), kAlwaysCanonical.end());
    return metrics;
}

inline const std::vector<cpu::Variant> kCpuVariants = {
        cpu::Variant::Auto,
        cpu::Variant::Buffered,
        cpu::Variant::Var1,
        cpu::Variant::Var5,
        cpu::Variant::Var6,
        cpu::Variant::Direct};

/// Those that a metric has.
inline std::vector<cpu::Variant> variantsOf(Metric metric) {
    std::vector<cpu::Variant> variants = kCpuVariants;
    if (std::count(kAlwaysCanonical.begin(), kAlwaysCanonical.end(), metric)) {
        std::erase(variants, cpu::Variant::Direct);
    }
    return variants;
}

enum class Contents {
    Uniform,     ///< components in [-1, 1)
    Far,         ///< close together, far from the origin: expanded L2 cancels
    Duplicates,  ///< 7 distinct vectors of Uniform
    Huge,        ///< squares, and some sums, beyond the type
    Denormal,    ///< multiples of the smallest denormal
    Integers,    ///< -8 .. 8
    FewDistinct, ///< 0 or 1: many ties
    Equal,       ///< all components 3
    Ascending,   ///< further and further from the queries
    Descending,  ///< nearer and nearer
    SignedZeros, ///< -0, 0 and a few ones; some vectors are zero
    SomeNan,     ///< Integers; every fourth vector has a NaN of either sign
    FewNumbers,  ///< Integers; of 20 vectors one has no NaN
    Infinite,    ///< Integers; every third vector has infinities
    Mixed,       ///< Integers with NaN and infinities, queries too
};

inline const std::vector<Contents> kAllContents = {
        Contents::Uniform,
        Contents::Far,
        Contents::Duplicates,
        Contents::Huge,
        Contents::Denormal,
        Contents::Integers,
        Contents::FewDistinct,
        Contents::Equal,
        Contents::Ascending,
        Contents::Descending,
        Contents::SignedZeros,
        Contents::SomeNan,
        Contents::FewNumbers,
        Contents::Infinite,
        Contents::Mixed};

inline const char* nameOf(Contents contents) {
    static const char* const names[] = {
            "Uniform",
            "Far",
            "Duplicates",
            "Huge",
            "Denormal",
            "Integers",
            "FewDistinct",
            "Equal",
            "Ascending",
            "Descending",
            "SignedZeros",
            "SomeNan",
            "FewNumbers",
            "Infinite",
            "Mixed"};
    return names[int(contents)];
}

/// True if no sum and no product of the components is rounded, so that a
/// result is right in one way only (not of Cosine and Lp).
inline bool isExact(Contents contents) {
    return contents >= Contents::Integers;
}

/// One vector of d components, the index-th of n; exact contents stay below
/// 2^24 in every sum for d <= 4096, n <= 2000.
template <class T>
void fillVector(
        Contents contents,
        bool isQuery,
        int64_t index,
        int64_t n,
        int d,
        std::mt19937& random,
        T* vector) {
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    constexpr T infinite = std::numeric_limits<T>::infinity();
    constexpr int exponents = std::numeric_limits<T>::max_exponent;
    constexpr int least = std::numeric_limits<T>::min_exponent -
            std::numeric_limits<T>::digits;
    auto below = [&](uint32_t bound) { return int(random() % bound); };
    auto uniform = [&] { // as fine as T
        const double high = random() * 0x1p-32;
        return T(2 * (high + random() * 0x1p-64) - 1);
    };
    std::minstd_rand group(isQuery ? 100 + index : 1 + below(7));
    const double scales[] = {0.3, 0.49, 0.51, 0.99};
    const int scale = int(exponents * scales[below(4)]);
    for (int j = 0; j < d; ++j) {
        switch (contents) {
            case Contents::Uniform:
                vector[j] = uniform();
                break;
            case Contents::Duplicates:
                vector[j] = T(double(group()) * 0x1p-30 - 1);
                break;
            case Contents::Far:
                vector[j] = T(100) + uniform() / 16;
                break;
            case Contents::Huge:
                vector[j] = std::ldexp(uniform(), scale);
                break;
            case Contents::Denormal:
                vector[j] = std::ldexp(T(below(513) - 256), least);
                break;
            case Contents::FewDistinct:
                vector[j] = T(below(2));
                break;
            case Contents::Equal:
                vector[j] = 3;
                break;
            case Contents::Ascending:
            case Contents::Descending:
                vector[j] = T(below(2));
                break;
            case Contents::SignedZeros:
                vector[j] = below(6) ? (below(2) ? T(0) : -T(0)) : T(1);
                break;
            default:
                vector[j] = T(below(17) - 8);
        }
    }
    if (contents == Contents::Ascending || contents == Contents::Descending) {
        const bool up = contents == Contents::Ascending;
        vector[0] = isQuery ? T(-1) : T(up ? index : n - index);
    }
    if (contents == Contents::SignedZeros && below(4) == 0) {
        std::fill(vector, vector + d, T(0));
    }
    const bool mixed = contents == Contents::Mixed;
    auto somewhere = [&](T value) { vector[below(d)] = value; };
    if (isQuery) {
        if (mixed && below(4) == 0) {
            somewhere(below(2) ? nan : below(2) ? infinite : -infinite);
        }
        return;
    }
    const bool rare = contents == Contents::FewNumbers && below(20) != 0;
    const bool some = contents == Contents::SomeNan && below(4) == 0;
    if (rare || some || (mixed && below(4) == 0)) {
        somewhere(below(2) ? nan : -nan);
    }
    if ((contents == Contents::Infinite && below(3) == 0) ||
        (mixed && below(4) == 0)) {
        for (int times = 1 + below(2); times > 0; --times) {
            somewhere(below(2) ? infinite : -infinite);
        }
    }
}

/// One search: its shape, its data and how it is laid out.
struct CpuCase {
    Metric metric = Metric::L2;
    double metricArg = 2;
    int64_t q = 5;
    int64_t n = 100;
    int d = 8;
    int64_t k = 10;
    Contents contents = Contents::Integers;
    int queryGap = 0; ///< elements between rows, NaN
    int vectorGap = 0;
    bool pickQueries = false;   ///< queryIds: any order, with repeats
    bool pickVectors = false;   ///< vectorIds: any order, of twice as many rows
    bool repeatVectors = false; ///< vectorIds with repeats
    uint32_t seed = 1;
    SearchMode mode = SearchMode::Plain;

    std::string describe() const {
        std::ostringstream text;
        text << metricName(metric);
        if (metric == Metric::Lp) {
            text << " p=" << metricArg;
        }
        text << " q=" << q << " n=" << n << " d=" << d << " k=" << k << " "
             << nameOf(contents);
        if (queryGap || vectorGap) {
            text << " gaps=" << queryGap << "," << vectorGap;
        }
        text << (pickQueries ? " queryIds" : "")
             << (pickVectors ? " vectorIds" : "")
             << (repeatVectors ? " repeated" : "") << " seed=" << seed;
        return text.str();
    }
};

inline std::string describe(const cpu::Choice& choice, int threads) {
    std::ostringstream text;
    text << nameOf(choice.variant) << " target='" << choice.target
         << "' blocks=" << choice.queryBlock << "," << choice.vectorBlock << ","
         << choice.depthBlock << " threads=" << threads;
    return text.str();
}

} // namespace faiss_bits::test

namespace faiss_bits::cpu {

/// GoogleTest's name of a parameter.
inline void PrintTo(Variant variant, std::ostream* out) {
    *out << nameOf(variant);
}

} // namespace faiss_bits::cpu
