#include "kernels/ivf/IvfTimes.h"

#include <algorithm>
#include <cmath>

#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfEstimateShape.h"
#include "kernels/ivf/IvfFewEstimates.h"
#include "kernels/ivf/IvfParams.h"
#include "kernels/ivf/IvfScratch.h"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/ivf/ListCodes.h"
#include "kernels/select/SelectCost.h"

namespace faiss_bits::ivf_times {

namespace {

// Seconds to write a bound, to multiply and compare, for the distance of a
// candidate, to append what is within a limit, and for the distance of a pair
// in tiles; bytes a second to read lists. Fitted to 46 times of estimates of
// float32 lists (H100), nine in ten of which are within 16%
// (docs/design/ivf_many_queries.md, "Expected times").
constexpr double kKeepTime = 1.1e-12;
constexpr double kScanTime = 2.1e-12;
constexpr double kCandidateTime = 166e-12;
constexpr double kFoundTime = 20e-12;
constexpr double kDistanceTime = 20e-12;
constexpr double kReadSpeed = 2.24e12;
/// Of estimates, to sort pairs and candidates and to start it all.
constexpr double kStartTime = 160e-6;
/// The part of it that each part of the queries takes again. A guess, and
/// rather too little: 10,240 queries of 32 of 1,024 lists, k = 1,000, were
/// expected to take 6.72 ms in six parts with bounds of all lists and 6.76 in
/// two with limits, and took 7.62 and 6.70 (docs/design/ivf_measured.md).
constexpr double kPartTime = 60e-6;
/// Of tiles of product codes, the same: by 24 parts of 12 and 16 of 25
/// components. Of others it was not fitted.
constexpr double kProductTilesTime = 50e-6;
/// To sort pairs twice, for a limit.
constexpr double kLimitTime = 60e-6;
/// A microsecond of the model of selections (SelectCost.h, H200).
constexpr double kSelectTime = 1.2e-6;

/// Seconds for a component of a vector: what codes add to the time of tiles, of
/// estimates, and of candidates, where a group of 32 vectors is decoded for all
/// that it has or they alone; and all of a distance by streams. Fitted to 2^20
/// vectors of 128 dimensions in 1,024 and 4,096 lists, each way forced, with
/// 128 to 10,240 queries (docs/design/ivf_many_queries.md, "Expected times").
struct CodingTimes {
    double estimate;
    double tile;
    double group;
    double candidate;
    double distance;
};

/// Whether neighbouring components of product codes are looked up together.
bool isTakenTogether(const IvfLists& lists) {
    const int dims = lists.d / lists.decoding.numParts;
    const auto areOf = [&](int blockDims) {
        return areInBlocksOf(blockDims, lists.decoding.partBits, lists.d, dims);
    };
    return areOf(4) || areOf(2);
}

CodingTimes timesOf(const IvfLists& lists) {
    if (lists.coding == ListCoding::Float32) {
        return {0, 0, 0, 0, 0.65e-12};
    }
    if (lists.coding != ListCoding::Product) {
        return {0.9e-12, 2.6e-12, 0.9e-12, 1e-12, 0.95e-12};
    }
    // It is the look-ups that take time. One component after another: by 90 to
    // 108 ps a pair for 400 of them and 64 queries at a time, in two scans
    // (H100, h100/ivf_sweep_7fa3511.json, parts of 25). Of long vectors,
    // whose codebook is in no shared memory: by searches of 24 parts of 12 and
    // 16 of 25 components (H100, docs/design/ivf_few_queries.md).
    const double lookUps = double(lists.decoding.numParts) / lists.d;
    const bool areTogether = isTakenTogether(lists);
    if (lists.d > IvfEstimateShape<true>::kDepth) {
        return {areTogether ? 1.2e-12 + 41e-12 * lookUps : 16e-12,
                9.3e-12,
                0.9e-12 + 4e-12 * lookUps,
                1e-12 + 4e-12 * lookUps,
                1.2e-12 + 0.6e-12 * lookUps};
    }
    return {areTogether ? 1.5e-12 + 1.5e-12 * lookUps : 8e-12,
            3e-12,
            0.9e-12 + 4e-12 * lookUps,
            1e-12 + 4e-12 * lookUps,
            0.8e-12 + 0.6e-12 * lookUps};
}

/// A pair by streams takes no less, however few dimensions it has (H100, d = 8
/// and 9).
constexpr double kStreamsPairTime = 21e-12;
/// And to start it all; vectors of a list that take as long as those that its
/// last block has no room for; and for what a component of codes takes: 64 to
/// 4,096 queries of 2 to 32 of 1,024 and 4,096 lists (H200,
/// docs/design/ivf_many_queries.md, "Expected times").
constexpr double kStreamsTime = 55e-6;
constexpr double kStreamsVectors = 64;
constexpr double kStreamsCodes = 0.87;

// Estimates of few queries a list (IvfFewEstimates.h): to start it all, to read
// and decode a component, a pair of a query and a list, one of a query and a
// vector, and what a candidate takes to the end. Fitted to the same searches.
struct FewTimes {
    double start;
    double component;
    double probe;
    double pair;
    double candidate;
};
/// Queries of a search, of which more or fewer were not timed; of float32 lists
/// no fewer than direct searches do not take: what these are expected to take
/// is more than they do, up to half.
constexpr idx_t kLeastFewRows = 128;
constexpr idx_t kLeastFewFloatRows = 257;
constexpr idx_t kMostFewRows = 4096;

FewTimes fewTimesOf(const IvfLists& lists) {
    constexpr double kCandidate = 0.35e-9;
    if (lists.coding != ListCoding::Product) {
        const double component =
                lists.coding == ListCoding::Float32 ? 1.55e-12 : 0.69e-12;
        return {85e-6, component, 1.7e-9, 2e-12, kCandidate};
    }
    constexpr double kLeastLookUps = 0.25;
    const double lookUps = double(lists.decoding.numParts) / lists.d;
    const double component =
            0.38e-12 + 2.64e-12 * std::max(lookUps, kLeastLookUps);
    return {75e-6, component, 1.3e-9, 1.7e-12, kCandidate};
}

/// The lists that one part of the queries probes, of all.
double probedShare(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const double pairs = double(plan.rowsAtATime) * p.nprobe;
    return 1 - std::exp(-pairs / double(p.lists.numLists));
}

/// Parts of the queries that fit into the scratch.
double partsOf(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    return std::ceil(double(p.numQueries) / double(plan.rowsAtATime));
}

/// To read all lists, and to spend `time` on each component.
double readTime(const IvfKnnProblem& p, double time) {
    const double bytes = double(numCodesOf(p.lists)) * bitsOfCodes(p.lists) / 8;
    return double(p.lists.numVectors) * (bytes / kReadSpeed + p.lists.d * time);
}

/// Queries of a part that meet in a list.
double pairsOfList(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    return double(plan.rowsAtATime) * p.nprobe / double(p.lists.numLists);
}

/// Times that a list is met by its queries, so many at a time.
double turnsOfList(const IvfKnnPlan& plan, const IvfKnnProblem& p, int most) {
    return std::ceil(pairsOfList(plan, p) / most);
}

/// Queries that meet in the lists that have most vectors, for one in a list on
/// average, where queries are distributed as vectors are. Times are fitted to
/// lists of which the longest are a quarter longer than others.
double unevennessOf(const IvfKnnProblem& p) {
    constexpr double kOfEven = 1.25;
    const double longest = double(p.mostVectors) / p.nprobe;
    const double even = double(p.lists.numVectors) / double(p.lists.numLists);
    return std::max(longest / (kOfEven * std::max(even, 1.0)), 1.0);
}

/// Times that estimates decode a list: once for 512 queries; product codes of
/// long vectors for their squares, and again for every 64 (IvfEstimateShape.h),
/// which takes twice as long where there are as many. Times of other codings
/// are fitted as if they were decoded so at any length.
double decodingsOfList(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    if (p.lists.coding != ListCoding::Product ||
        p.lists.d <= IvfEstimateShape<true>::kDepth) {
        return turnsOfList(plan, p, kIvfItemQueries);
    }
    constexpr int kQueries = IvfEstimateShape<false>::kQueries;
    const double turns =
            turnsOfList(plan, p, kQueries) + pairsOfList(plan, p) / kQueries;
    return 1 + turns * unevennessOf(p);
}

/// To read all lists for estimates, and to decode them so many times. Float16
/// and scalar codes are decoded while others are read: 64 and 128 queries of 32
/// and 128 of 1,024 lists take at most 1.07 times as long of 16 bits as of 8
/// (H100, docs/design/ivf_many_queries.md).
double estimatesTime(const IvfKnnProblem& p, double decodings) {
    const double decoding = decodings * timesOf(p.lists).estimate;
    return p.lists.coding == ListCoding::Product
            ? readTime(p, decoding)
            : std::max(
                      readTime(p, 0),
                      p.lists.d * decoding * double(p.lists.numVectors));
}

/// To decode the candidates of one part of the queries; to read them is part of
/// what one takes.
double decodingTime(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const CodingTimes times = timesOf(p.lists);
    const double groups = std::max(double(p.lists.numVectors) / kIvfGroup, 1.0);
    const double candidates = double(plan.rowsAtATime) * plan.candidates;
    const double share =
            probedShare(plan, p) * (1 - std::exp(-candidates / groups));
    return p.lists.d *
            std::min(
                    share * double(p.lists.numVectors) * times.group,
                    candidates * times.candidate);
}

/// Of one part of the queries.
double selectionsTime(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const idx_t rows = plan.rowsAtATime;
    double time = selectMicroseconds(plan.choice, ivfChoice(p, plan, rows)) +
            selectMicroseconds(plan.selection, ivfSelection(p, plan, rows));
    if (plan.room > 0) {
        time += selectMicroseconds(plan.limits, ivfLimits(p, plan, rows));
    }
    return time * kSelectTime;
}

} // namespace

double ofComponent(const IvfLists& lists) {
    return timesOf(lists).distance;
}

double ofStreams(const IvfKnnProblem& p) {
    const double more =
            p.lists.coding == ListCoding::Float32 ? 1.0 : kStreamsCodes;
    const double vectors =
            double(p.mostVectors) + double(p.nprobe) * kStreamsVectors;
    return kStreamsTime +
            double(p.numQueries) *
            std::max(
                    more * vectors * p.lists.d * ofComponent(p.lists),
                    double(p.mostVectors) * kStreamsPairTime) *
            p.device.singleToDouble / 2;
}

bool areDecodedInBlocks(const IvfLists& lists) {
    return lists.coding == ListCoding::Product && isTakenTogether(lists) &&
            lists.d <= IvfEstimateShape<true>::kDepth;
}

double ofTiles(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    // A tile takes as long however few queries it has.
    const double queries = double(p.numQueries);
    const double ofList = queries * p.nprobe / double(p.lists.numLists);
    const double inTiles =
            std::ceil(ofList / kIvfTileQueries) * kIvfTileQueries / ofList;
    // Of few queries a list is decoded once, of others on average half a time
    // more than they fill tiles.
    const double turns = p.lists.coding == ListCoding::Product
            ? std::max(pairsOfList(plan, p) / kIvfTileQueries + 0.5, 1.0)
            : turnsOfList(plan, p, kIvfTileQueries);
    const double decode = turns * timesOf(p.lists).tile;
    const double start =
            p.lists.coding == ListCoding::Product ? kProductTilesTime : 0;
    return start +
            partsOf(plan, p) * probedShare(plan, p) * readTime(p, decode) +
            queries * double(p.mostVectors) * inTiles * kDistanceTime;
}

double ofReading(const IvfKnnProblem& p) {
    return readTime(p, timesOf(p.lists).estimate);
}

double ofFound(double count) {
    return count * kFoundTime;
}

double ofRangeEstimates(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    constexpr double kInRange = 0.01;
    const double pairs = double(p.numQueries) * double(p.mostVectors);
    // Ranges of codes were not timed against what estimatesTime() expects.
    const double scan = probedShare(plan, p) *
            readTime(p, decodingsOfList(plan, p) * timesOf(p.lists).estimate);
    return partsOf(plan, p) * (kStartTime + scan + decodingTime(plan, p)) +
            pairs * (kScanTime + kInRange * (kFoundTime + kCandidateTime));
}

namespace {

/// By the kernel of few queries a list, in one part, as it was timed.
bool areFew(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const idx_t least = p.lists.coding == ListCoding::Float32
            ? kLeastFewFloatRows
            : kLeastFewRows;
    return plan.room == 0 && plan.rowsAtATime == p.numQueries &&
            p.numQueries >= least && p.numQueries <= kMostFewRows &&
            ivfFewEstimatesQueries(p.lists, p.numQueries * p.nprobe) ==
            kIvfFewQueries;
}

double ofFewEstimates(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const FewTimes times = fewTimesOf(p.lists);
    const double queries = double(p.numQueries);
    return times.start +
            probedShare(plan, p) * double(p.lists.numVectors) * p.lists.d *
            times.component +
            queries *
            (p.nprobe * times.probe + double(p.mostVectors) * times.pair +
             plan.candidates * times.candidate);
}

} // namespace

double ofEstimates(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    if (areFew(plan, p)) {
        return ofFewEstimates(plan, p);
    }
    const double queries = double(p.numQueries);
    const double pairs = queries * double(p.mostVectors);
    const double kept = queries * double(plan.stride);
    const double share = probedShare(plan, p);
    const double scan = share * estimatesTime(p, decodingsOfList(plan, p));
    // Of the last part, too, as if it were as large as the others.
    const double parts = partsOf(plan, p);
    double time = kStartTime + (parts - 1) * kPartTime +
            parts * (scan + decodingTime(plan, p) + selectionsTime(plan, p)) +
            kept * kKeepTime + pairs * kScanTime +
            queries * plan.candidates * kCandidateTime;
    if (plan.room > 0) {
        const double vectors = double(p.mostVectors) / p.nprobe;
        const double sampled = plan.sampleVectors > 0
                ? std::min(double(plan.sampleVectors) / vectors, 1.0)
                : 1.0;
        // Of vectors in any order.
        const double found =
                queries * p.k * p.nprobe / (plan.nearProbes * sampled);
        time += kLimitTime +
                partsOf(plan, p) * share * sampled *
                        readTime(p, timesOf(p.lists).estimate) +
                kept * plan.boundVectors * kScanTime + ofFound(found);
    }
    return time;
}

} // namespace faiss_bits::ivf_times
