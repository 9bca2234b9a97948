#pragma once

#include "kernels/knn/certified/CertifiedParams.h"
#include "kernels/survivors/ListParams.h"

namespace faiss_bits {

/// Vectors of a unit: a warp makes their keys at a time.
constexpr uint32_t kDirectUnit = 32;
/// Queries of a block, where there are more than one.
constexpr int kDirectQueries = 4;

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
};

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
