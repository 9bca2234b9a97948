#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace faiss_bits {

/// Keys of a thread that holds a row, or a part of one, in registers, at most.
constexpr int kMostHeldItems = 32;

/// Of rows by combs: packs of 16 bytes that a thread has of a tile, and threads
/// of a multiprocessor.
constexpr int kCombPacks = 4;
constexpr int kCombThreads = 1024;
/// Shared memory of such a block, at most, beside its entries.
constexpr size_t kHeldStorageBytes = 32 * 1024;

/// A compiled kernel of SampleThreshold (Policies.inc).
struct ThresholdPolicy {
    int threads = 0; ///< of a block
    int room = 0;    ///< entries that it sorts at the end; 0: none, they are
                     ///< sorted in memory
    int mostK = 0;   ///< that it is taken for

    bool operator==(const ThresholdPolicy&) const = default;

    std::string toString() const {
        return "threads = " + std::to_string(threads) +
                ", room = " + std::to_string(room);
    }
};

#define BITS_WHOLE_ROWS(threads, room, mostK) {threads, room, mostK},
inline constexpr ThresholdPolicy kWholeRowsPolicies[] = {
#include "kernels/select/threshold/Policies.inc"
};

#define BITS_CLUSTER_ROWS(threads, room, mostK) {threads, room, mostK},
inline constexpr ThresholdPolicy kClusterRowsPolicies[] = {
#include "kernels/select/threshold/Policies.inc"
};

#define BITS_COMB_ROWS(threads, room, mostK) {threads, room, mostK},
inline constexpr ThresholdPolicy kCombRowsPolicies[] = {
#include "kernels/select/threshold/Policies.inc"
};

#define BITS_HELD_ROWS(threads, room, mostK) {threads, room, mostK},
inline constexpr ThresholdPolicy kHeldRowsPolicies[] = {
#include "kernels/select/threshold/Policies.inc"
};

#define BITS_FINISH_ROWS(threads, room, mostK) {threads, room, mostK},
inline constexpr ThresholdPolicy kFinishRowsPolicies[] = {
#include "kernels/select/threshold/Policies.inc"
};

/// The first of a list that has so many threads and is for this k; room = 0 if
/// there is none.
constexpr ThresholdPolicy policyFor(
        std::span<const ThresholdPolicy> list,
        int threads,
        int k) {
    for (const ThresholdPolicy& one : list) {
        if (one.threads == threads && k <= one.mostK) {
            return one;
        }
    }
    return {threads, 0, 0};
}

} // namespace faiss_bits
