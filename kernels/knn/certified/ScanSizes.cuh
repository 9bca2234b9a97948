/// Sizes that ScanAgain goes by.
#pragma once

#include <cstdint>

#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// isOfProducts() for kernels.
template <Metric kMetric>
constexpr bool kIsOfProducts = isOfProducts(kMetric);
/// Up to so many, a vector is read by eight lanes and met with each query, some
/// of them at a time; more make tiles. A tile of products has 64 queries, of
/// which few fill a small part. Of inner products 16 queries already take
/// longer so (300 dimensions, 1.4 times), and of cosines, which have three
/// sums, fewer.
template <Metric kMetric>
constexpr uint32_t kFewSlots = kMetric == Metric::L2 ? 16
        : kMetric == Metric::InnerProduct            ? 12
                                                     : 8;
/// Entries that are sorted in shared memory.
constexpr int kSharedSort = 6144;
/// Longer lists are sorted in pieces.
constexpr uint32_t kShortList = 768;
/// Longer lists are cut by a block each, however many there are.
constexpr uint32_t kWarpList = 4096;
/// Vectors of the first step at most, and those for every place of the result:
/// all of them are entries.
constexpr int64_t kFirstVectors = 2048;
constexpr int64_t kFirstPerPlace = 8;
/// A later step has up to so many times the vectors before it, and about as
/// many entries for every place pass the limit.
constexpr int64_t kMostGrowth = 64;
/// After a step that overflowed they are of so many times fewer vectors, and
/// then twice as many each time: vectors along a walk pass in masses or not at
/// all, and where each step was as large again nearly all were scanned in vain.
constexpr uint32_t kShrink = 16;
/// Tiles of a block that are computed by canonical distances alone, after one
/// in which many pairs were near.
constexpr int kUnfilteredTiles = 7;

/// Kinds of queries that are told apart at most, so that those of one make
/// tiles (SlotKinds.cuh).
constexpr uint32_t kMostKinds = 16;

} // namespace faiss_bits
