#include "kernels/ivf/IvfTimes.h"

#include <algorithm>
#include <cmath>

#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfEstimateShape.h"
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
    return lists.decoding.partBits == 8 && lists.d % 4 == 0 &&
            (dims % 4 == 0 || dims == 2);
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
    // (H100, h100/ivf_sweep.json at 7fa3511a37, parts of 25).
    const double lookUps = double(lists.decoding.numParts) / lists.d;
    const bool areTogether = isTakenTogether(lists);
    return {areTogether ? 1.5e-12 + 1.5e-12 * lookUps : 8e-12,
            3e-12,
            0.9e-12 + 4e-12 * lookUps,
            1e-12 + 4e-12 * lookUps,
            0.8e-12 + 0.6e-12 * lookUps};
}

// A direct search: to start it all, and beside that to sort its pairs by list,
// to be given its lists, or to select; a term of a pair, and bytes a second.
// Fitted to some times of float32 lists (H100, docs/design/ivf_few_queries.md),
// within 15%. The term does not matter there; it is a guess, and rather too
// much.
constexpr double kDirectTime = 29e-6;
constexpr double kSharedTime = 16e-6;
constexpr double kFewPairsTime = 6e-6; // in place of it, by one block
constexpr double kProbesTime = 12e-6;
constexpr double kSelectionTime = 15e-6;
constexpr double kDirectTermTime = 0.5e-12;
constexpr double kDirectSpeed = 2.2e12;
// Of codes that queries share and that come through shared memory, a lane with
// four vectors: a component that is decoded, and a term of a pair. By the
// machine code (sm_90): a group of 32 vectors of 128 components is 330
// instructions of a scheduler and 130 for each query, of which six in ten
// cycles have one, and 192 cycles of float64 for each query. Not timed.
constexpr double kWideDecodingTime = 0.6e-12;
constexpr double kWideTermTime = 0.25e-12;
/// A pair takes no less, however few dimensions it has: of queries that share
/// lists and a lane with a vector, of others, and by streams (H100, d = 8 and
/// 9).
constexpr double kAlonePairTime = 13e-12;
constexpr double kTogetherPairTime = 42e-12;
constexpr double kStreamsPairTime = 21e-12;

// Of product codes that queries share: to look a component up for eight of
// them, by the cycles of shared memory and a fifth more; to write and read an
// estimate; and all that does not depend on pairs, so that 4 and 16 queries of
// 32 and 8 lists take 75 and 82 us (H200, a run that is not kept).
constexpr double kLookUpTime = 0.35e-12;
constexpr double kEstimateTime = 1.5e-12;
constexpr double kCandidatesTime = 32e-6;

// Of product codes by tables, by the cycles of 132 multiprocessors of 1.7 GHz
// and a quarter more (IvfTableScan.cuh): an entry for one of eight queries;
// what else a pair takes; a number of a table for eight; and guesses, what a
// query takes at the end, with few neighbours and with more. None was measured.
constexpr double kTableLookUpTime = 0.24e-12;
constexpr double kTableKeepTime = 0.6e-12;
constexpr double kTableEntryTime = 0.47e-12;
constexpr double kTableFinishTime = 20e-9;
constexpr double kTableLongFinishTime = 60e-9;
constexpr int kH100Multiprocessors = 132;

/// Seconds for a component that a direct search reads. Of codes: fitted to six
/// times of eight bits (H200), within 15%.
double directDecodingOf(const IvfLists& lists) {
    if (lists.coding == ListCoding::Float32) {
        return 0.1e-12;
    }
    return lists.coding == ListCoding::Product ? timesOf(lists).distance
                                               : 1.4e-12;
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

/// Times that a list is met by its queries, so many at a time.
double turnsOfList(const IvfKnnPlan& plan, const IvfKnnProblem& p, int most) {
    const double pairs = double(plan.rowsAtATime) * p.nprobe;
    return std::ceil(pairs / double(p.lists.numLists) / most);
}

/// Times that estimates decode a list: once for 512 queries; product codes of
/// long vectors for their squares, and again for every 64 (IvfEstimateShape.h).
/// Times of other codings are fitted as if they were decoded so at any length.
double decodingsOfList(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    return p.lists.coding == ListCoding::Product &&
                    p.lists.d > IvfEstimateShape<true>::kDepth
            ? 1 + turnsOfList(plan, p, IvfEstimateShape<false>::kQueries)
            : turnsOfList(plan, p, kIvfItemQueries);
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

double ofStreams(const IvfKnnProblem& p) {
    return double(p.numQueries) * double(p.mostVectors) *
            std::max(p.lists.d * timesOf(p.lists).distance, kStreamsPairTime) *
            p.device.singleToDouble / 2;
}

bool areDecodedInBlocks(const IvfLists& lists) {
    return lists.coding == ListCoding::Product && isTakenTogether(lists) &&
            lists.d <= IvfEstimateShape<true>::kDepth;
}

namespace {

/// Tiles of so many queries that probe a list, whose queries are as chance has
/// them.
double tilesOfList(const IvfKnnProblem& p, int queries) {
    const double ofList =
            double(p.numQueries) * p.nprobe / double(p.lists.numLists);
    const double probed = 1 - std::exp(-ofList);
    return std::max(
            probed,
            ofList / queries + double(queries - 1) / (2 * queries) * probed);
}

/// Beside what starts a direct search by tables.
double ofTableScan(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    const double queries = double(p.numQueries);
    const double pairs = queries * double(p.mostVectors);
    const double parts = std::ceil(queries / double(plan.rowsAtATime));
    const double tiles = tilesOfList(p, kIvfTableQueries);
    const double inTiles =
            tiles * kIvfTableQueries * p.lists.numLists / (queries * p.nprobe);
    const double rows = double(1 << p.lists.decoding.partBits);
    const double lookUps = kTableLookUpTime * p.lists.decoding.numParts;
    const double blocks = double(kH100Multiprocessors) /
            std::max(p.device.multiprocessors, 1);
    return parts * kCandidatesTime +
            blocks *
            (pairs * inTiles * (lookUps + kTableKeepTime) +
             tiles * double(p.lists.numLists) * rows * p.lists.d *
                     kTableEntryTime) +
            pairs * kEstimateTime +
            queries *
            (p.k <= kMostFinishedK ? kTableFinishTime : kTableLongFinishTime);
}

/// Beside what starts a direct search that shares product codes.
double ofProductScan(const IvfKnnProblem& p) {
    const double pairs = double(p.numQueries) * double(p.mostVectors);
    const double ofList =
            double(p.numQueries) * p.nprobe / double(p.lists.numLists);
    const double tiles = tilesOfList(p, kIvfProductQueries);
    return kCandidatesTime +
            pairs * (kEstimateTime + tiles / ofList * p.lists.d * kLookUpTime);
}

} // namespace

double ofDirect(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    const double pairs = double(p.numQueries) * double(p.mostVectors);
    const double bytes = double(numCodesOf(p.lists)) * bitsOfCodes(p.lists) / 8;
    const double probes = double(p.numQueries) * p.nprobe;
    const double lists = double(p.lists.numLists);
    // Of what is read: each list that is probed once, or for each query.
    const double share =
            plan.shared ? lists * (1 - std::exp(-probes / lists)) / probes : 1;
    const bool areSharedVectorsAlone = plan.shared && areSharedAlone(p.lists);
    // A tile of queries decodes a vector once.
    const int together =
            areSharedVectorsAlone ? kIvfAloneQueries : kIvfSharedQueries;
    const double turns = plan.shared ? std::max(share, 1.0 / together) : 1;
    const bool areAlone = p.lists.coding == ListCoding::Product ||
            areVectorsAlone(p.lists) || areSharedVectorsAlone;
    const bool areWide = plan.shared && areSharedWide(p.lists);
    const double term = areWide ? kWideTermTime : kDirectTermTime;
    const double decoding =
            areWide ? kWideDecodingTime : directDecodingOf(p.lists);
    const double arithmetic = pairs *
            std::max(p.lists.d * (term + turns * decoding),
                     areAlone ? kAlonePairTime : kTogetherPairTime);
    const double sorting =
            sortsPairsInOneBlock(p.numQueries * p.nprobe, p.lists.numLists)
            ? kFewPairsTime
            : kSharedTime;
    const double start = kDirectTime + (plan.shared ? sorting : 0) +
            (plan.findsLists ? 0 : kProbesTime) +
            (plan.selects ? kSelectionTime : 0);
    if (plan.byTables) {
        return start + ofTableScan(plan, p);
    }
    if (plan.shared && p.lists.coding == ListCoding::Product) {
        return start + ofProductScan(p);
    }
    return start + std::max(arithmetic, share * pairs * bytes / kDirectSpeed);
}

double ofTiles(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    // A tile takes as long however few queries it has.
    const double queries = double(p.numQueries);
    const double ofList = queries * p.nprobe / double(p.lists.numLists);
    const double inTiles =
            std::ceil(ofList / kIvfTileQueries) * kIvfTileQueries / ofList;
    const double decode =
            turnsOfList(plan, p, kIvfTileQueries) * timesOf(p.lists).tile;
    return partsOf(plan, p) * probedShare(plan, p) * readTime(p, decode) +
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
    const CodingTimes times = timesOf(p.lists);
    const double scan = probedShare(plan, p) *
            readTime(p, decodingsOfList(plan, p) * times.estimate);
    return partsOf(plan, p) * (kStartTime + scan + decodingTime(plan, p)) +
            pairs * (kScanTime + kInRange * (kFoundTime + kCandidateTime));
}

double ofEstimates(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const double queries = double(p.numQueries);
    const double pairs = queries * double(p.mostVectors);
    const double kept = queries * double(plan.stride);
    const CodingTimes times = timesOf(p.lists);
    const double share = probedShare(plan, p);
    const double scan =
            share * readTime(p, decodingsOfList(plan, p) * times.estimate);
    // Of the last part, too, as if it were as large as the others.
    double time = kStartTime +
            partsOf(plan, p) *
                    (scan + decodingTime(plan, p) + selectionsTime(plan, p)) +
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
                        readTime(p, times.estimate) +
                kept * plan.boundVectors * kScanTime + ofFound(found);
    }
    return time;
}

} // namespace faiss_bits::ivf_times
