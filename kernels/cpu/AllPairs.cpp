#include "kernels/cpu/AllPairs.h"

#include <algorithm>
#include <type_traits>

#include "kernels/common/Error.h"
#include "kernels/cpu/Bytes.h"
#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/CertifiedPacked.h"

namespace faiss_bits::cpu {

namespace {

/// Of fewer vectors what candidates take that is not theirs counts.
constexpr idx_t kFewVectors = 512;

/// Vectors so few that all pairs may be less work on any processor with
/// registers of 256 bits; forced variants have candidates.
template <class T>
bool areFew(const Setup<T>& setup, const Problem<T>& problem) {
    return setup.numVectors < kFewVectors && setup.common.lanes >= 8 &&
            problem.choice.variant == Variant::Auto;
}

/// Vectors so few for the queries that all pairs, row by row, are less work
/// than candidates or packed products, whatever k is (measured on an AMD EPYC,
/// docs/design/cpu_few_pairs.md). By the shape alone.
bool areFewForRows(KernelMetric metric, idx_t q, idx_t n, int depth) {
    const bool isProduct = metric == KernelMetric::Product; // no differences
    const double values = double(n) * depth;
    if (q <= 2) {
        return n <= (isProduct ? 500 : 400) &&
                values <= (isProduct ? 1.2e5 : 4.8e4);
    }
    // Threads share vectors that are more work, but not the rows of so few
    // queries.
    constexpr idx_t kFewQueries = 8;
    constexpr double kMostOfFew = 1e6;
    const double work = values * double(q);
    if (q < kFewQueries && work > kMostOfFew) {
        return false;
    }
    const idx_t most = isProduct ? 1800 / q + 45 : 1000 / q + 32;
    // Of few components what a query takes beside its pairs decides.
    constexpr int kShort = 8;
    return n <= (q >= kFewQueries && depth < kShort ? most / 2 : most);
}

/// True if rows are forced, or less work than anything else.
template <class T>
bool isForRows(const Setup<T>& setup, const Problem<T>& problem) {
    const Choice& choice = problem.choice;
    const bool isKnown = std::is_same_v<T, float> &&
            problem.mode != SearchMode::Plain &&
            (setup.metric == KernelMetric::L2 ||
             setup.metric == KernelMetric::Product);
    if (!isKnown) {
        return false;
    }
    if (choice.variant == Variant::Direct) {
        // A thread has 84 bytes a vector of scratch.
        constexpr idx_t kMostForced = idx_t(1) << 20;
        const bool isForced = choice.arithmetic == Arithmetic::Doubles;
        BITS_THROW_IF_NOT_FMT(
                !isForced || setup.numVectors <= kMostForced,
                "choice.variant = direct with arithmetic = doubles meets %lld "
                "vectors: at most %lld are supported",
                (long long)setup.numVectors,
                (long long)kMostForced);
        return isForced;
    }
    return choice.variant == Variant::Auto &&
            choice.arithmetic == Arithmetic::Auto && setup.common.lanes >= 8 &&
            areFewForRows(
                    setup.metric,
                    setup.numQueries,
                    setup.numVectors,
                    setup.depth);
}

/// True if products in float64 are less work than candidates of `k` results.
template <class T>
bool isForDoubles(const Setup<T>& setup, const Problem<T>& problem, idx_t k) {
    const Arithmetic wanted = problem.choice.arithmetic;
    const bool isKnown = isCertifiedPacked(setup, problem);
    BITS_THROW_IF_NOT_FMT(
            wanted != Arithmetic::Doubles || isKnown,
            "choice.arithmetic = %s is for certified searches of float32, with "
            "L2 or inner product",
            nameOf(wanted));
    if (wanted != Arithmetic::Auto) {
        return wanted == Arithmetic::Doubles;
    }
    // What it is worth packing for; and rows that are sorted more than
    // searched.
    constexpr idx_t kLeastQueries = 8, kMostShare = 12;
    const idx_t n = setup.numVectors;
    if (!isKnown || setup.numQueries < kLeastQueries) {
        return false;
    }
    const bool isFew = areFew(setup, problem);
    const bool isFast =
            canonicalKernelsFor<T>(setup.metric, setup.target).prefersAllPairs;
    if (!isFew && (n < kFewVectors || kMostShare * k < n || !isFast)) {
        return false;
    }
    // Nanoseconds of a query: pairs and packing, more than what candidates
    // take, and canonical distances of these; of few vectors, choosing, the
    // proof, and plans of a search (by measurements of n = 8192 on a Xeon, and
    // of few vectors on an AMD EPYC, docs/design/cpu_all_pairs.md).
    const double d = setup.depth, q = double(setup.numQueries);
    const double pairs = d * double(n), packed = pairs / q;
    const double ofPairs = isFew ? 0.035 * pairs + 0.6 * packed - 1250 / q - 90
                                 : 0.028 * pairs + 2 * packed;
    const double ofComponent = isFast ? 0.22 : 0.1;
    return ofPairs < double(k) * (2.5 + ofComponent * std::max(d, 8.0));
}

void sweepByDoubles(Setup<float>& setup) {
    setup.kernels.runTiles =
            canonicalKernelsFor<float>(setup.metric, setup.target).runTiles;
    setup.kernels.scanDirect = nullptr;
    setup.byDoubles = true;
    setup.panelValues = setup.depth; // packed in any case, never direct
    // Packed as they are, without terms; the kernels know the metric.
    setup.metric = KernelMetric::Squares;
}

} // namespace

template <class T>
AllPairs allPairsFor(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        bool shapeOnly) {
    // Beyond, bytes are faster where they can be used.
    constexpr int kShort = 64;
    if (isForRows(setup, problem)) {
        return AllPairs::Rows;
    }
    // Of so small a share of the vectors candidates take less where threads run
    // beside each other: they share what multiplies, by twos (measured with 16
    // threads of a Xeon, docs/design/cpu_all_pairs.md).
    constexpr idx_t kShareOfTeams = 8;
    const bool byDoubles = isForDoubles(setup, problem, k);
    if (problem.choice.arithmetic == Arithmetic::Auto) {
        if (setup.team > 1 && kShareOfTeams * k <= setup.numVectors &&
            !areFew(setup, problem)) {
            return AllPairs::None;
        }
        if (byDoubles && setup.depth <= kShort) {
            return AllPairs::Doubles;
        }
    }
    if (isForBytes(setup, problem, k, shapeOnly)) {
        return AllPairs::Bytes;
    }
    return byDoubles ? AllPairs::Doubles : AllPairs::None;
}

void sweepAllPairs(Setup<float>& setup, AllPairs way) {
    if (way == AllPairs::Bytes) {
        sweepByBytes(setup);
    } else if (way == AllPairs::Doubles) {
        sweepByDoubles(setup);
    }
}

template AllPairs allPairsFor(
        const Setup<float>&,
        const Problem<float>&,
        idx_t,
        bool);
template AllPairs allPairsFor(
        const Setup<double>&,
        const Problem<double>&,
        idx_t,
        bool);

} // namespace faiss_bits::cpu
