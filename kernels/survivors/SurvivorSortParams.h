#pragma once

#include "kernels/device/KeySource.h"
#include "kernels/survivors/ResultParams.h"

namespace faiss_bits {

/// Threads of the blocks that sort or distribute, and their entries.
constexpr int kBucketThreads = 512;
constexpr int kBucketItems = 7;

/// Entries that a block sorts at a time, and that a bucket has room for. With
/// 2048 expected and so large a sample, about one bucket in a million has more.
constexpr uint32_t kBucketRoom = kBucketThreads * kBucketItems;

/// Sampled entries a bucket; every 64th of the sorted sample is a splitter.
constexpr uint32_t kBucketSamples = 64;

/// Up to here a block groups its entries by bucket before it writes them.
constexpr uint32_t kMostGrouped = 1024;

/// Up to here every block sums the sizes of the buckets before its own: one
/// launch less.
constexpr uint32_t kMostSummed = 4 * kBucketThreads;

/// What the kernels of one level get. The entries of level 0 are survivors;
/// those of every other level are the sample that the level before it wants
/// sorted, so that its results are that level's splitters.
struct SurvivorSortParams : KeySource, ResultParams {
    int level = 0;
    uint32_t columns = 0;  // those of entries are below it
    uint32_t capacity = 0; // of a row's list at level 0
    uint32_t bucket = 0;   // entries that a bucket is expected to have
    uint32_t buckets = 1;  // of a row at most
    uint32_t stride = 0;
    const uint32_t* counts = nullptr;  // [rows], of level 0
    const uint64_t* entries = nullptr; // [rows, stride]

    uint64_t* sample = nullptr;          // [rows, buckets * kBucketSamples]
    const uint64_t* splitters = nullptr; // [rows, buckets], from number 1
    uint32_t* sizes = nullptr;           // [rows, buckets]
    uint32_t* starts = nullptr; // [rows, buckets], place of the first entry
    uint64_t* slots = nullptr;  // [rows, buckets, kBucketRoom]

    // Level > 0: what the level before has, and wants.
    const uint64_t* before = nullptr; // [rows, strideBefore], its entries
    uint32_t strideBefore = 0;
    uint32_t* sizesBefore = nullptr;  // [rows, outBuckets]
    uint64_t* drawn = nullptr;        // `entries`, where they are drawn
    uint64_t* outSplitters = nullptr; // [rows, outBuckets]
    uint32_t outBuckets = 0;

    uint32_t rows = 0;
    uint32_t tiles = 0;  // blocks of a row that distribute its entries
    uint32_t keyBit = 0; // lowest bit in which ordered keys differ
    bool anyOrder = false;
};

} // namespace faiss_bits
