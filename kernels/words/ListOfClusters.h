#pragma once

#include <cstdint>
#include <vector>

#include "kernels/words/Options.h"
#include "kernels/words/WordGroups.h"

namespace faiss_bits::words {

/// Words in buckets around centers (Chavez and Navarro 2005; Barrientos et al.
/// 2012, II-A). A bucket holds the kBucket words nearest to its center of those
/// that are left; the next center is the word with the greatest sum of
/// distances to the centers before. The first is drawn with a fixed seed.
struct ListOfClusters {
    static constexpr uint32_t kBucket = 32;
    static constexpr uint32_t kBucketGroups = kBucket / WordGroups::kSize;

    WordGroups centers;          ///< in the order in which they were made
    WordGroups buckets;          ///< kBucketGroups for every center
    std::vector<uint32_t> radii; ///< distance of the farthest of the bucket

    uint32_t count() const {
        return uint32_t(radii.size());
    }
};

/// n^2 / 2 (kBucket + 1) distances.
ListOfClusters makeListOfClusters(
        const Dictionary& dictionary,
        const WordOptions& options);

} // namespace faiss_bits::words
