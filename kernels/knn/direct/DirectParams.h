#pragma once

#include "kernels/canonical/RoundedOps.h"
#include "kernels/knn/certified/CertifiedParams.h"
#include "kernels/survivors/ListParams.h"

namespace faiss_bits {

/// Vectors of a unit: a warp makes their keys at a time.
constexpr uint32_t kDirectLogUnit = 5;
constexpr uint32_t kDirectUnit = 1 << kDirectLogUnit;
/// Queries of a block, where there are more than one.
constexpr int kDirectQueries = 4;

/// Components that a lane of DirectProducts.cuh and its neighbours have on
/// their way, and multiples of which a query has in shared memory.
constexpr int kDirectProductStep = 32;

BITS_HOST_DEVICE constexpr int directProductPadded(int d) {
    return (d + kDirectProductStep - 1) / kDirectProductStep *
            kDirectProductStep;
}

/// Queries of one of its blocks: 8, 4, or none where these take more shared
/// memory than GPUs of fast float64 have.
constexpr int directProductQueries(int64_t queries, int d) {
    constexpr int64_t kMostBytes = 88 << 10;
    const int64_t bytes = int64_t(directProductPadded(d)) * sizeof(double);
    return queries > 4 && 8 * bytes <= kMostBytes ? 8
            : 4 * bytes <= kMostBytes             ? 4
                                                  : 0;
}

/// Groups whose least may be asked for: k and a few, so that one histogram is
/// mostly enough to find them.
constexpr uint32_t mostNearGroups(uint32_t k) {
    return k + k / 8 + 8;
}

/// Keys of all pairs, and the least entry of every group of 2^logUnits units.
struct DirectKeys {
    uint32_t* keys = nullptr;     // [rows, stride], ordered (Entry.cuh)
    uint64_t* least = nullptr;    // [rows, groups]; nullptr: not wanted
    const int32_t* ids = nullptr; // [places] of the vectors, or nullptr: all
    int64_t places = 0;           // vectors, or members of the list
    int64_t stride = 0;           // whole groups
    uint32_t groups = 0;
    uint32_t logUnits = 0;
    /// 2^logRun vectors side by side are in a unit, and then as many far behind
    /// them: directNumber(). kDirectLogUnit: whole units.
    uint32_t logRun = kDirectLogUnit;
};

/// The vector, or member of the list, at a place. Neighbours are often alike
/// (vectors stored cluster by cluster); in groups of their own, the limit of a
/// query from the least of every group lets little more than k pass. So units
/// take runs that lie far apart, the first ones of all units before the second
/// ones, and groups take units that lie far apart. Whole units: the number is
/// the place.
BITS_HOST_DEVICE uint32_t directNumber(const DirectKeys& keys, uint32_t place) {
    if (keys.logRun == kDirectLogUnit) {
        return place;
    }
    const uint32_t units = keys.groups << keys.logUnits;
    const uint32_t ofGroup =
            place >> kDirectLogUnit & ((1u << keys.logUnits) - 1);
    const uint32_t group = place >> (kDirectLogUnit + keys.logUnits);
    const uint32_t unit = ofGroup * keys.groups + group;
    const uint32_t member = place & (kDirectUnit - 1);
    const uint32_t run = member >> keys.logRun;
    return ((run * units + unit) << keys.logRun) +
            (member & ((1u << keys.logRun) - 1));
}

/// What makes them.
struct DirectScanParams {
    CertifiedParams search;
    DirectKeys out;
};

/// What makes results of them.
struct DirectFinishParams : FinishParams {
    DirectKeys direct;
    uint32_t mostNear = 0;    // mostNearGroups(k)
    bool stagesLeast = false; // shared memory has room for all groups' least
};

} // namespace faiss_bits
