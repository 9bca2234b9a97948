#pragma once

#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Places of the table of equal vectors: a power of two, and no more than a
/// block has room for keys.
constexpr uint32_t kGroupSlots = 8192;
/// Sets of equal vectors, at most: the table stays half empty.
constexpr uint32_t kMostGroups = kGroupSlots / 2;
/// Vectors of a chunk of the scan that makes the sets, at most.
constexpr int kLongestChunk = 256;
/// Of a vector that is in none.
constexpr uint16_t kNoGroup = 0xFFFF;

/// Sets of vectors that are equal, bit for bit, so that a query has the same
/// distance to all of a set: memory for them. A set is known by its place in
/// the table.
struct VectorGroups {
    /// [n, and to the end of the last chunk] places; nullptr: no sets are made
    uint16_t* ofVectors = nullptr;
    /// [kGroupSlots]: hash, and the number of one of its vectors + 1; or 0
    unsigned long long* table = nullptr;
    uint32_t* sizes = nullptr;  // [kGroupSlots]: allowed vectors
    uint16_t* places = nullptr; // [most], of the sets as they were found
    uint32_t* count = nullptr;  // of sets; more than `most`: too many
    uint32_t* keys = nullptr;   // [slots of the scan, sets], ordered
    uint32_t most = 0;          // sets, kMostGroups at most
    uint32_t room = 0;          // of keys, `most` or more
};

/// What the kernel that searches again gets.
struct ScanAgainParams : ScanParams {
    VectorGroups groups;
    /// Rows may have their second flag set, with candidates and canonical
    /// distances that are still to be sorted (Rescore.cuh).
    bool mayBeAlike = false;
    /// Results of a row that is searched again are those among its candidates,
    /// ranked, if it has no second flag or rows may have it: what its k-th is
    /// not behind.
    bool areRanked = false;
    /// The same of all rows, of some vectors or empty places.
    bool haveResults = false;
};

} // namespace faiss_bits
