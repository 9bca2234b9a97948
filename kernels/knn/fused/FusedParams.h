#pragma once

#include "kernels/knn/certified/CertifiedParams.h"
#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/PassedLists.h"

namespace faiss_bits {

/// Distances of some queries to a sample of the vectors, and what becomes of
/// them: a limit for each query.
struct SampleLimitParams {
    CertifiedParams search; // rows and queries are read
    // [rows, samples], as a DistanceMethod has it, or written by
    // launchSampleFew
    float* values = nullptr;
    const float* columnBias = nullptr; // [samples]: norms to add, or nullptr
    /// From products in bfloat16, of what images hold.
    bool ofImages = false;
    /// Bit i % 32 of word i / 32: member i of the sample may be a result.
    /// nullptr: all may.
    const uint32_t* allowedBits = nullptr;
    uint32_t samples = 0; // kMostSamples at most
    uint32_t rank = 0; // the limit is that of the rank'th of the sample, or of
    uint32_t room = 0; // a later one, up to this
    /// A query within whose limit so many of the sample are has no list.
    uint32_t overfull = 0;
    float* limits = nullptr;    // [rows]
    float* complete = nullptr;  // [rows], SurvivorOutput::complete
    uint32_t* counts = nullptr; // [rows], set to zero
};

/// The least keys of strips of the vectors, and the limits that follow.
struct StripLimitParams {
    CertifiedParams search;      // rows and what images have of them are read
    const float* keys = nullptr; // [rows, strips], StripKeys
    uint32_t strips = 0;         // kMostStrips at most
    uint32_t rank = 0;           // the limit is that of the rank'th
    float* limits = nullptr;     // [rows]
    float* complete = nullptr;   // [rows], SurvivorOutput::complete
    uint32_t* counts = nullptr;  // [rows], set to zero
    ByteSearch bytes;            // by L2: its limits and costs are written
};

/// Limits that come from elsewhere (FlatKnnProblem::limits).
struct GivenLimitParams {
    CertifiedParams search;       // rows and queries are read
    const float* given = nullptr; // [rows]
    float* limits = nullptr;      // [rows]
    /// [rows], SurvivorOutput::complete: infinity, or NaN of a query that is
    /// no number.
    float* complete = nullptr;
    uint32_t* counts = nullptr; // [rows], set to zero
};

constexpr uint32_t kMostStrips = 2048;
constexpr uint32_t kMostSamples = 16384;
/// Entries of a list of a second sample that a limit is made of, at most.
constexpr uint32_t kMostSecondEntries = 512;
/// The second sample: one vector in so many, of no fewer than these.
constexpr int kSecondShare = 16;
constexpr idx_t kLeastOfSecond = 1 << 19;
/// Queries whose distances to the sample are canonical ones, by one kernel.
constexpr idx_t kFewQueries = 16;

/// Entries of what passed in a second sample, and the limits that follow.
struct CloserLimitParams {
    CertifiedParams search; // its columns and entries are those of the lists
    uint32_t rank = 0;      // as SampleLimitParams::rank, of this sample
    uint32_t* counts = nullptr; // [rows], set to zero
    float* limits = nullptr;    // [rows], never raised
    float* complete = nullptr;  // [rows]
};

/// Lists of vectors that passed, and their results.
struct PassedParams {
    CertifiedParams search; // its columns and entries are those of the lists
    const uint32_t* counts = nullptr; // [rows]
    /// A list that more passed than it has room for gets empty places: the row
    /// is not proved whatever they are.
    bool leavesOverfull = false;
};

} // namespace faiss_bits
