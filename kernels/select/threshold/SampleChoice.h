#pragma once

#include <array>
#include <cmath>

#include "kernels/select/Select.h"
#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

/// What is drawn of a row: entries, that are known by the least of their
/// groups.
struct SampleDraw {
    double size = 0;
    double groups = 0;

    /// Groups that have one of so many entries in random places.
    double rankOf(double entries) const {
        const double share = std::min(entries / size, 1.0);
        return groups * (1 - std::pow(1 - share, size / groups)) + 0.5;
    }
    /// The other way round.
    double entriesOf(double rank) const {
        return size * (1 - std::pow(1 - rank / groups, groups / size));
    }
};

/// A sample of `places` places a thread and what it leads to.
struct SampleChoice {
    int places = 0;
    uint32_t parts = 1;
    SampleDraw draw;
    double rank = 0;      // of the limit, in random order
    double survivors = 0; // then, without a lower limit on the way
    double random = 0;    // most of them in random order
    double lowered = 0;   // survivors if the limit is lowered on the way
    double usual = 0;     // most of them in random order and in sorted rows
    double alike = 0;     // where neighbours are as alike as can be
    double cost = HUGE_VAL;
};

/// The limit is the r-th least entry of the sample. Fewer than k entries pass
/// if r of the sample are among the k best, which is rare (rareSum) for
/// rows in random order; in rows with runs of neighbouring values, one run of
/// the sample more than expected must not do it.
///
/// None (places = 0) where it would tell too little. `lowers`: the limit is
/// lowered on the way; `survivorBytes`: what a survivor costs.
SampleChoice makeSample(
        double cols,
        int k,
        int threads,
        int places,
        uint32_t parts,
        bool lowers,
        double survivorBytes);

/// The cheapest whose usual survivors are no more than maxCapacity, or none.
SampleChoice bestSample(
        const SelectProblem& p,
        int threads,
        uint32_t parts,
        bool lowers,
        double survivorBytes,
        double maxCapacity);

/// Ranks of the limit by dispersion; where they may not grow, all are that of
/// random order. Of many rows, one in twenty whose neighbours are alike may
/// have a limit that is too low; of few rows, it is as rare as in random order.
std::array<SampleRank, kSampleRanks> sampleRanks(
        const SampleChoice& sample,
        const SelectProblem& p,
        bool mayGrow);

/// What the highest rank leaves in the mean where too few survive as rarely as
/// in random order.
double mostAlikeSurvivors(const SampleChoice& sample, const SelectProblem& p);

} // namespace faiss_bits
