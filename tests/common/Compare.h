#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/Oracle.h"

/// Comparison of results by what they promise.
namespace faiss_bits::test {

/// Equal as bits, save that every NaN equals every NaN.
inline bool sameBits(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) {
        return std::isnan(a) && std::isnan(b);
    }
    return std::memcmp(&a, &b, sizeof(float)) == 0;
}

struct RowOfKeys {
    const float* keys = nullptr; ///< [cols], what is compared and returned
    int64_t cols = 0;
    const int64_t* ids = nullptr; ///< [cols], or nullptr: column + idOffset
    int64_t idOffset = 0;
};

/// One row of a selection against the oracle's ranking of the same row:
/// the contract leaves no freedom, so every id must agree, and every key must
/// be the key of that id.
///
/// expected   at least min(k, candidates) entries of topKOfRow
/// sentinel   key of the places that are left over (their id is -1)
/// signedZero also the sign of a zero must be that of the key
inline ::testing::AssertionResult isTopKOfRow(
        const RowOfKeys& row,
        const std::vector<Ranked>& expected,
        const float* outKeys,
        const int64_t* outIds,
        int64_t k,
        float sentinel,
        bool signedZero = true) {
    std::unordered_map<int64_t, int64_t> columnOfId;
    if (row.ids) {
        for (int64_t c = 0; c < row.cols; ++c) {
            columnOfId.emplace(row.ids[c], c);
        }
    }
    std::vector<bool> seen(row.cols); // ids are distinct, as columns are
    const int64_t filled = std::min<int64_t>(k, expected.size());
    for (int64_t i = 0; i < k; ++i) {
        const int64_t id = outIds[i];
        const float key = outKeys[i];
        if (i >= filled) {
            if (id != -1 || !sameBits(key, sentinel)) {
                return ::testing::AssertionFailure()
                        << "place " << i << " of " << k << " is (" << key
                        << ", " << id << "), but the row has only "
                        << expected.size() << " candidates: expected ("
                        << sentinel << ", -1)";
            }
            continue;
        }
        int64_t column = id - row.idOffset;
        if (row.ids) {
            const auto found = columnOfId.find(id);
            column = found == columnOfId.end() ? -1 : found->second;
        }
        if (column < 0 || column >= row.cols) {
            return ::testing::AssertionFailure()
                    << "place " << i << " has id " << id
                    << ", which no column of the row has";
        }
        if (seen[column]) {
            return ::testing::AssertionFailure()
                    << "place " << i << " repeats id " << id;
        }
        seen[column] = true;
        const float keyOfId = row.keys[column];
        const bool sameKey = sameBits(key, keyOfId) ||
                (!signedZero && key == 0 && keyOfId == 0);
        if (!sameKey) {
            return ::testing::AssertionFailure()
                    << "place " << i << " returns key " << key << " for id "
                    << id << ", whose key is " << keyOfId;
        }
        if (id != expected[i].id) {
            return ::testing::AssertionFailure()
                    << "place " << i << " is (" << key << ", " << id
                    << "), expected (" << expected[i].key << ", "
                    << expected[i].id << ")";
        }
    }
    return ::testing::AssertionSuccess();
}

/// Puts one row of an unsorted result [k] in the order of a sorted one: best
/// first, equal keys by the column of their id, places with id -1 last. What is
/// wrong in it stays wrong.
inline void sortResult(
        float* outKeys,
        int64_t* outIds,
        int64_t k,
        bool largest,
        const RowOfKeys& row = {}) {
    std::unordered_map<int64_t, int64_t> columnOfId;
    for (int64_t c = 0; row.ids && c < row.cols; ++c) {
        columnOfId.emplace(row.ids[c], c);
    }
    const auto columnOf = [&](int64_t id) {
        const auto found = columnOfId.find(id);
        return found == columnOfId.end() ? id : found->second;
    };
    std::vector<std::pair<float, int64_t>> places(k);
    for (int64_t i = 0; i < k; ++i) {
        places[i] = {outKeys[i], outIds[i]};
    }
    std::stable_sort(
            places.begin(), places.end(), [&](const auto& a, const auto& b) {
                if ((a.second == -1) != (b.second == -1)) {
                    return b.second == -1;
                }
                return ranksBefore(
                        {a.first, columnOf(a.second)},
                        {b.first, columnOf(b.second)},
                        largest);
            });
    for (int64_t i = 0; i < k; ++i) {
        outKeys[i] = places[i].first;
        outIds[i] = places[i].second;
    }
}

/// One query's result of a search in rounded arithmetic.
struct NeighbourCheck {
    const std::vector<double>* distances = nullptr; ///< true ones, [n]
    /// Bound on the rounding error of the distance to vector i.
    std::function<double(int64_t)> error;
    bool largest = false;
    /// True: NaN stands behind every number. False: it is never returned, and
    /// neither is an infinite L2 distance that the arithmetic made NaN.
    bool returnsNan = true;
};

/// The places of a result that must be, and that may be, more than empty.
struct FilledPlaces {
    int64_t least = 0;
    int64_t most = 0;
};

inline FilledPlaces filledPlaces(const NeighbourCheck& check, int64_t k) {
    FilledPlaces places;
    for (double distance : *check.distances) {
        const bool maybeNan = std::isnan(distance) ||
                (std::isinf(distance) && !check.largest);
        places.least += check.returnsNan || !maybeNan;
        places.most += check.returnsNan || !std::isnan(distance);
    }
    return {std::min(k, places.least), std::min(k, places.most)};
}

/// True if `result` lists k nearest neighbours within the rounding of the
/// stated arithmetic: ids unique and in range, distances near the true ones,
/// sorted with ties by the lower id, and no vector left out that is nearer
/// than a returned one by more than both roundings. Vectors whose true
/// distance is NaN or infinite may be returned as NaN or infinite, behind or
/// before the finite ones as the order says, or as check.returnsNan has it.
inline ::testing::AssertionResult isNearest(
        const NeighbourCheck& check,
        const float* outDistances,
        const int64_t* outIds,
        int64_t k) {
    const std::vector<double>& truth = *check.distances;
    const int64_t n = truth.size();
    const FilledPlaces places = filledPlaces(check, k);
    int64_t filled = places.most;
    while (filled > places.least && outIds[filled - 1] == -1) {
        --filled;
    }
    const float sentinel = check.largest ? -std::numeric_limits<float>::max()
                                         : std::numeric_limits<float>::max();
    // Expanded L2 of an infinite vector is inf - inf: no better than worst.
    auto worstIfUnordered = [&](double value) {
        const double worst = std::numeric_limits<double>::infinity();
        return std::isnan(value) ? (check.largest ? -worst : worst) : value;
    };
    std::unordered_set<int64_t> seen;
    for (int64_t i = 0; i < k; ++i) {
        const int64_t id = outIds[i];
        const float got = outDistances[i];
        if (i >= filled) {
            if (id != -1 || got != sentinel) {
                return ::testing::AssertionFailure()
                        << "place " << i << " is (" << got << ", " << id
                        << "), but " << filled << " of " << n
                        << " vectors are all: expected (" << sentinel
                        << ", -1)";
            }
            continue;
        }
        if (id < 0 || id >= n) {
            return ::testing::AssertionFailure()
                    << "place " << i << " has id " << id << ", n = " << n;
        }
        if (!seen.insert(id).second) {
            return ::testing::AssertionFailure()
                    << "place " << i << " repeats id " << id;
        }
        const double want = truth[id];
        if (!check.returnsNan && (std::isnan(got) || std::isnan(want))) {
            return ::testing::AssertionFailure()
                    << "place " << i << " is (" << got << ", " << id
                    << "), whose true distance is " << want
                    << ": NaN must not be returned";
        }
        const bool close = std::isfinite(want)
                ? std::abs(double(got) - want) <= check.error(id)
                : worstIfUnordered(got) == worstIfUnordered(want);
        if (!close) {
            return ::testing::AssertionFailure()
                    << "place " << i << ": distance " << got << " of id " << id
                    << " is off the true " << want << " by "
                    << double(got) - want << ", allowed "
                    << (std::isfinite(want) ? check.error(id) : 0.0);
        }
        if (i > 0 &&
            !ranksBefore(
                    {outDistances[i - 1], outIds[i - 1]},
                    {got, id},
                    check.largest)) {
            return ::testing::AssertionFailure()
                    << "places " << i - 1 << " and " << i
                    << " are out of order: (" << outDistances[i - 1] << ", "
                    << outIds[i - 1] << ") before (" << got << ", " << id
                    << ")";
        }
    }
    // Left-out vectors against the least good returned one, each widened by
    // its own rounding.
    const double sign = check.largest ? -1 : 1;
    auto optimistic = [&](int64_t i) {
        const double value = sign * worstIfUnordered(truth[i]);
        return std::isfinite(value) ? value + check.error(i) : value;
    };
    double worstReturned = -std::numeric_limits<double>::infinity();
    int64_t worstId = -1;
    for (int64_t i = 0; i < filled; ++i) {
        const double value = sign * worstIfUnordered(truth[outIds[i]]);
        const double floor =
                std::isfinite(value) ? value - check.error(outIds[i]) : value;
        if (worstId < 0 || floor > worstReturned) {
            worstReturned = floor;
            worstId = outIds[i];
        }
    }
    for (int64_t i = 0; i < n && filled > 0; ++i) {
        if (!check.returnsNan && std::isnan(truth[i])) {
            continue;
        }
        if (!seen.count(i) && optimistic(i) < worstReturned) {
            return ::testing::AssertionFailure()
                    << "id " << i << " at true distance " << truth[i]
                    << " is left out, but id " << worstId
                    << " at true distance " << truth[worstId] << " is returned";
        }
    }
    return ::testing::AssertionSuccess();
}

} // namespace faiss_bits::test
