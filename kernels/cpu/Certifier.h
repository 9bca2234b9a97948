#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// What became of a query.
enum class Outcome : uint8_t {
    Open,   ///< nothing yet
    Done,   ///< its result is written
    Misled, ///< more exact candidates may do
    Tied,   ///< so many are alike that they will not
};

/// What candidates come from.
struct SweepKind {
    KernelMetric metric;
    int depth;
    idx_t numVectors;
    bool byInt16 = false;
};

/// Candidates within an error of the k-th: random vectors have about
/// k (d / 1024)^1.5 / 10 where products cancel, and next to none where they do
/// not. Of 16-bit integers, k d / 8000, more where k is a small part of n: what
/// is near the k-th of normal keys. By experience.
inline double expectedWithin(idx_t k, const SweepKind& source) {
    if (source.byInt16) {
        const double share =
                std::max(1.0, double(source.numVectors) / double(k));
        return double(k) * source.depth * std::sqrt(std::log(share)) / 8000;
    }
    const bool cancels = source.metric <= KernelMetric::Cosine;
    return cancels ? 0.1 * double(k) * std::pow(source.depth / 1024.0, 1.5) : 0;
}

/// Those of them that are rescored with the k nearest, before it is known
/// whether they have to be: of components, which are mostly fewer, a third.
inline idx_t likelyWithin(idx_t k, const SweepKind& source) {
    const double within = expectedWithin(k, source);
    return source.byInt16 ? std::lround(std::min(within, double(k)))
                          : std::lround(std::min(within / 3, 0.25 * double(k)));
}

/// Certifies the candidates of the queries of one sweep; shared by its threads.
template <class T>
struct Certifier {
    Certifier(
            const CanonicalKernels<T>& kernels,
            idx_t k,
            const SweepKind& source)
            : kernels(kernels),
              k(k),
              leastChosen(k + likelyWithin(k, source)),
              mostChosen(
                      leastChosen + 2 + k / 32 +
                      std::min<idx_t>(8, 96 / source.depth)) {}

    CanonicalKernels<T> kernels;
    idx_t k; ///< wanted, at most the number of vectors
    /// So many of a row's candidates, if they are told apart from the others,
    /// are rescored before others are looked at: k, what is expected within an
    /// error of the k-th, by experience, and some, so that few steps find them:
    /// more where a vector is little work.
    idx_t leastChosen, mostChosen;
    bool direct = false;                   ///< candidates of Variant::Direct
    const double* vectorSquares = nullptr; ///< for the kernels; may be null
    HeapSlack<T> slack;                    ///< for the sinks
    std::vector<Outcome> outcomes;         ///< [queries of the sweep]
    std::atomic<idx_t> tried{0}, failed{0}, tied{0}, rescored{0};

    void note(idx_t query, Outcome outcome) {
        outcomes[query] = outcome;
        tried.fetch_add(1, std::memory_order_relaxed);
        if (outcome != Outcome::Done) {
            failed.fetch_add(1, std::memory_order_relaxed);
        }
        if (outcome == Outcome::Tied) {
            tied.fetch_add(1, std::memory_order_relaxed);
        }
    }

    /// Nothing is known yet.
    bool isUntried() const {
        return tried.load(std::memory_order_relaxed) == 0;
    }

    /// So many queries failed that the others are not worth trying.
    bool isHopeless() const {
        constexpr idx_t kEnough = 64;
        const idx_t count = tried.load(std::memory_order_relaxed);
        return count >= kEnough &&
                2 * failed.load(std::memory_order_relaxed) > count;
    }

    /// What to expect of a query that was not tried.
    Outcome likely() const {
        return 2 * tied.load() > failed.load() ? Outcome::Tied
                                               : Outcome::Misled;
    }
};

/// Candidates that a certified search asks its kernels for: more than k, so
/// that the limit that others did not pass is seldom within an error of the
/// k-th. Three standard deviations more than what is expected are seldom
/// reached. Kernels that keep buffers have more to spare.
inline idx_t withMargin(idx_t k, const SweepKind& source) {
    const idx_t numVectors = source.numVectors;
    const double within = expectedWithin(k, source);
    // With integers, a query that is repeated is much more work than others.
    const double most = source.byInt16
            ? std::min(within + 4 * std::sqrt(within) + 2, double(k) + 10)
            : std::min(within + 3 * std::sqrt(within), 0.25 * double(k) + 2);
    // Of few the margin would be one, which is missed as often as there is
    // another.
    const bool one = k < 4 && within < 0.002;
    const idx_t few = one ? 1 : within < 0.02 ? 2 : 3;
    const idx_t margin = few + k / 64 + idx_t(most);
    return k < numVectors - margin ? k + margin : numVectors;
}

} // namespace faiss_bits::cpu
