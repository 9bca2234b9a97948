#pragma once

#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedKnn.h"

namespace faiss_bits {

/// Scratch of one run, in the order it is taken.
struct FusedScratch {
    float* sample = nullptr; // [samples, d]
    // [samples / 32], with a filter, but for strips
    uint32_t* sampleBits = nullptr;
    uint32_t* secondBits = nullptr; // [secondSamples / 32], the same
    float* sampleNorms = nullptr;   // [samples], L2 by products
    float* sampleFacts = nullptr;   // [samples], metrics with RowFacts
    float* queryFacts = nullptr;    // [sampleQueries], the same
    void* product = nullptr;        // of the sampling method
    float* distances = nullptr;     // [sampleQueries, samples]
    float* stripKeys = nullptr;     // [tileQueries, strips.perRow]
    float* limits = nullptr;        // [tileQueries]
    float* complete = nullptr;      // [tileQueries]
    uint32_t* counts = nullptr;     // [tileQueries]
    float* slotRows = nullptr;      // [slotCopySize], scoresBySlots()
    uint32_t* bits = nullptr;       // [tileQueries, wordsOf], passesToBits()
    CertifiedScratch certified;     // columns and entries: the lists
    std::unique_ptr<FusedScan> scan;

    FusedScratch(
            const FlatKnnProblem& problem,
            const FusedPlan& plan,
            WorkspaceSlices& slices);
};

/// The search of the sample: its shape.
FlatKnnProblem sampleProblem(
        const FlatKnnProblem& problem,
        const FusedPlan& plan);

/// How distances of many queries to it are found. Products of L2 are off by a
/// part of the norms' squares; where the scan goes component by component, as
/// of one to three dimensions, neighbours are nearer than that, and distances
/// are of differences. Where only products are built they are products.
const DistanceMethod& samplingMethod(
        const FlatKnnProblem& problem,
        const FusedPlan& plan);

} // namespace faiss_bits
