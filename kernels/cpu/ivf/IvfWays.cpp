#include "kernels/cpu/ivf/IvfWays.h"

#include <algorithm>
#include <cmath>

namespace faiss_bits::cpu {

namespace {

/// Lists that up to so many queries meet are mostly not packed, else. They are
/// scanned together where they are short: up to so many vectors, more where a
/// vector is more work, and more where places are selected, which are read
/// singly either way.
constexpr double kDirectQueries = 2;
constexpr double kGatheredColumns = 8;
constexpr double kGatheredLongColumns = 24;
constexpr double kGatheredPlaces = 48;
constexpr int kGatheredLongDepth = 48;

/// Is it less work to scan a list of up to 32 vectors for each of its queries
/// than to pack it, and them? Cycles for a component; by experience.
bool isLessThanTiles(double columns, double queries, int depth) {
    const double scan = columns * queries * (0.35 + 4.0 / depth);
    const double tiles = 24 * std::ceil(queries / 12) + queries + 13;
    return columns <= kGatheredLongColumns && scan <= tiles;
}

} // namespace

bool gathersLists(
        const IvfKnnProblem& problem,
        const IvfSize& size,
        int threads,
        idx_t rows) {
    const bool isPossible = problem.lists->areKept();
    if (problem.choice.way != IvfWay::Auto) {
        return isPossible && problem.choice.way == IvfWay::Gathered;
    }
    const bool isAllowed = isPossible && rows >= threads &&
            problem.choice.sharing != IvfSharing::Lists;
    const double columns = size.numPairs / std::max(1.0, size.numProbes);
    // Queries that a list meets, if all are met by as many.
    const double queries =
            std::max(1.0, size.numProbes / double(problem.numLists));
    if (!isAllowed) {
        return false;
    }
    if (queries > kDirectQueries) {
        return isLessThanTiles(columns, queries, problem.d);
    }
    const bool isWork = problem.d >= kGatheredLongDepth;
    return columns <= (problem.allowed  ? kGatheredPlaces
                               : isWork ? kGatheredLongColumns
                                        : kGatheredColumns);
}

idx_t fewQueries(idx_t columns, int depth) {
    // More where a vector is more work than its place in a tile, and more where
    // a list fills few tiles.
    return depth < 64 ? 2 : columns <= 64 ? 6 : 4;
}

} // namespace faiss_bits::cpu
