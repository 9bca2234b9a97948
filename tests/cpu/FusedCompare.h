#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/Oracle.h"
#include "tests/cpu/FusedReference.h"

/// Results held against what they promise.
namespace faiss_bits::test {

/// What one query may be answered with: every row that is searched, and the
/// keys that rounding can give it.
template <class T>
struct Candidates {
    std::vector<int64_t> ids;      ///< distinct, ascending
    std::vector<int> times;        ///< how often each is searched
    std::vector<Accepted<T>> keys; ///< of each
    int64_t count = 0;             ///< sum of times

    /// Place of an id, or -1.
    int64_t find(int64_t id) const {
        const auto at = std::lower_bound(ids.begin(), ids.end(), id);
        const bool found = at != ids.end() && *at == id;
        return found ? at - ids.begin() : -1;
    }
};

/// True if `result` is the k best of the candidates for some choice of their
/// keys among the accepted ones: ids among the candidates, keys accepted and
/// never NaN, sorted with ties by the lower id, and every candidate left out
/// has an accepted key that ranks behind the last one returned, or may be NaN.
/// With one accepted key each there is one right answer. Places left over, from
/// the first with id -1 on, are the sentinel and -1.
template <class T>
::testing::AssertionResult isTopKOf(
        const Candidates<T>& candidates,
        bool largest,
        const T* outDistances,
        const int64_t* outIds,
        int64_t k) {
    auto failure = [] { return ::testing::AssertionFailure(); };
    const T sentinel = largest ? -std::numeric_limits<T>::max()
                               : std::numeric_limits<T>::max();
    const int64_t filled = std::find(outIds, outIds + k, -1) - outIds;
    std::vector<int> seen(candidates.ids.size());
    for (int64_t i = 0; i < k; ++i) {
        const int64_t id = outIds[i];
        const T key = outDistances[i];
        if (i >= filled) {
            if (id != -1 || !(key == sentinel)) {
                return failure() << "place " << i << " is (" << key << ", "
                                 << id << "), behind one with id -1";
            }
            continue;
        }
        if (std::isnan(key)) {
            return failure() << "place " << i << " is NaN, of id " << id;
        }
        const int64_t at = candidates.find(id);
        if (at < 0) {
            return failure() << "place " << i << " is (" << key << ", " << id
                             << "), an id that is not searched";
        }
        if (++seen[at] > candidates.times[at]) {
            return failure() << "place " << i << " repeats id " << id;
        }
        if (!candidates.keys[at].has(key)) {
            return failure() << "place " << i << " gives " << key << " for id "
                             << id << ", expected " << candidates.keys[at].least
                             << " .. " << candidates.keys[at].most
                             << (candidates.keys[at].nan ? " or NaN" : "");
        }
        const Ranked now{double(key), id};
        if (i > 0) {
            const Ranked before{double(outDistances[i - 1]), outIds[i - 1]};
            if (ranksBefore(now, before, largest)) {
                return failure() << "places " << i - 1 << " and " << i
                                 << " are out of order: (" << before.key << ", "
                                 << before.id << ") before (" << key << ", "
                                 << id << ")";
            }
        }
    }
    for (size_t at = 0; k > 0 && at < candidates.ids.size(); ++at) {
        const double worst = candidates.keys[at].worst(largest);
        const int64_t id = candidates.ids[at];
        if (seen[at] == candidates.times[at] || std::isnan(worst)) {
            continue;
        }
        if (filled < k) {
            return failure() << "id " << id << " is left out, whose key is "
                             << worst << ", and only " << filled << " of " << k
                             << " places are filled";
        }
        const Ranked last{double(outDistances[k - 1]), outIds[k - 1]};
        if (ranksBefore({worst, id}, last, largest)) {
            return failure() << "id " << id << " is left out, whose key "
                             << worst << " ranks before the last one, ("
                             << last.key << ", " << last.id << ")";
        }
    }
    return ::testing::AssertionSuccess();
}

/// True if `result` [count] is all candidates within the radius, ids ascending:
/// what is surely nearer is in, what is surely not is out.
template <class T>
::testing::AssertionResult isRangeOf(
        const Candidates<T>& candidates,
        bool largest,
        T radius,
        const T* outDistances,
        const int64_t* outIds,
        int64_t count) {
    auto failure = [] { return ::testing::AssertionFailure(); };
    auto within = [&](T key) { return largest ? key > radius : key < radius; };
    std::vector<int> seen(candidates.ids.size());
    for (int64_t i = 0; i < count; ++i) {
        const int64_t id = outIds[i];
        const T key = outDistances[i];
        const int64_t at = candidates.find(id);
        if (at < 0 || ++seen[at] > candidates.times[at]) {
            return failure() << "place " << i << " has id " << id
                             << ", not searched or repeated";
        }
        if (i > 0 && outIds[i - 1] > id) {
            return failure() << "id " << id << " after " << outIds[i - 1];
        }
        if (!within(key)) {
            return failure() << "id " << id << " at " << key
                             << " is not within " << radius;
        }
        if (!candidates.keys[at].has(key)) {
            return failure() << "id " << id << " is given " << key
                             << ", expected " << candidates.keys[at].least
                             << " .. " << candidates.keys[at].most;
        }
    }
    for (size_t at = 0; at < candidates.ids.size(); ++at) {
        const T worst = candidates.keys[at].worst(largest);
        if (within(worst) && seen[at] != candidates.times[at]) {
            return failure() << "id " << candidates.ids[at] << " at " << worst
                             << " is missing within " << radius;
        }
    }
    return ::testing::AssertionSuccess();
}

} // namespace faiss_bits::test
