#include "kernels/ivf/IvfTimes.h"

#include <algorithm>
#include <cmath>

#include "kernels/ivf/IvfParams.h"
#include "kernels/ivf/ListCodes.h"

namespace faiss_bits::ivf_times {

namespace {

// Seconds to write a bound and to select from it, to multiply, for the distance
// of a candidate, and for that of a pair in tiles; bytes a second to read
// lists.
constexpr double kKeepTime = 2.3e-12;
constexpr double kKeepManyTime = 10e-12; // where more than kMany are selected
constexpr int kMany = 512;
constexpr double kScanTime = 1.5e-12;
constexpr double kCandidateTime = 300e-12;
constexpr double kDistanceTime = 20e-12;
constexpr double kReadSpeed = 2.5e12;
/// Of estimates, to sort pairs and candidates and to start it all.
constexpr double kSortTime = 80e-6;

/// Seconds for a component of a vector, of a machine of 132 multiprocessors.
struct CodingTimes {
    double decode;   ///< by the lanes of estimates
    double inTile;   ///< for a tile of distances
    double distance; ///< and its part of a distance, by streams
};

/// Of codes that are looked up it is the look-ups that take time.
CodingTimes timesOf(const IvfLists& lists) {
    if (lists.coding == ListCoding::Float32) {
        return {0, 0, 0.6e-12};
    }
    if (lists.coding != ListCoding::Product) {
        return {0.6e-12, 2e-12, 0.8e-12};
    }
    const double lookUps = double(lists.decoding.numParts) / lists.d;
    return {0.6e-12 + 4e-12 * lookUps, 4e-12, 0.6e-12 + 3e-12 * lookUps};
}

/// The part of the lists that are probed.
double probedShare(const IvfKnnProblem& p) {
    const double pairs = double(p.numQueries) * p.nprobe;
    return 1 - std::exp(-pairs / double(p.lists.numLists));
}

/// To read the lists once for each part of the queries.
double readTime(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const double parts =
            std::ceil(double(p.numQueries) / double(plan.rowsAtATime));
    const double bytes = double(numCodesOf(p.lists)) * bitsOfCodes(p.lists) / 8;
    return parts * double(p.lists.numVectors) * bytes * probedShare(p) /
            kReadSpeed;
}

/// To decode them once for each part, which takes `time` a component.
double decodeTime(const IvfKnnPlan& plan, const IvfKnnProblem& p, double time) {
    const double parts =
            std::ceil(double(p.numQueries) / double(plan.rowsAtATime));
    return parts * double(p.lists.numVectors) * p.lists.d * probedShare(p) *
            time;
}

/// Times that a list is read for its queries, so many at a time.
double turnsOfList(const IvfKnnProblem& p, int queries) {
    const double pairs = double(p.numQueries) * p.nprobe;
    return std::ceil(pairs / double(p.lists.numLists) / queries);
}

} // namespace

double ofStreams(const IvfKnnPlan&, const IvfKnnProblem& p) {
    const double pairs = double(p.numQueries) * double(p.mostVectors);
    return pairs * p.lists.d * timesOf(p.lists).distance *
            (double(p.device.singleToDouble) / 2);
}

double ofTiles(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    // A tile takes as long however few queries it has.
    const double queries = double(p.numQueries);
    const double ofList = queries * p.nprobe / double(p.lists.numLists);
    const double turns = turnsOfList(p, kIvfTileQueries);
    return readTime(plan, p) +
            decodeTime(plan, p, turns * timesOf(p.lists).inTile) +
            queries * double(p.mostVectors) * turns * kIvfTileQueries / ofList *
            kDistanceTime;
}

double ofEstimates(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const double queries = double(p.numQueries);
    const double pairs = queries * double(p.mostVectors);
    const double kept = queries * double(plan.stride);
    const bool isNear = plan.room > 0;
    const double turns = (isNear ? 2 : 1) + turnsOfList(p, kIvfItemQueries);
    return kSortTime + (isNear ? 3 : 2) * readTime(plan, p) +
            decodeTime(plan, p, turns * timesOf(p.lists).decode) +
            kept * (plan.candidates > kMany ? kKeepManyTime : kKeepTime) +
            (isNear ? pairs + kept : pairs) * kScanTime +
            queries * plan.candidates * kCandidateTime;
}

} // namespace faiss_bits::ivf_times
