#pragma once

#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedKnn.h"

namespace faiss_bits {

/// The search of the sample: its shape, and its vectors and norms where they
/// are given.
FlatKnnProblem sampleProblem(
        const FlatKnnProblem& problem,
        const FusedPlan& plan,
        const void* vectors = nullptr,
        const float* norms = nullptr);

/// Scratch of one run, in the order it is taken.
struct FusedScratch {
    void* sample = nullptr;        // [samples, d]
    float* sampleNorms = nullptr;  // [samples], L2 by products
    float* sampleFacts = nullptr;  // [samples], metrics with RowFacts
    float* queryFacts = nullptr;   // [numQueries], the same
    void* product = nullptr;       // of the sampling method
    float* distances = nullptr;    // [sampleQueries, samples]
    float* limits = nullptr;       // [tileQueries]
    uint32_t* counts = nullptr;    // [tileQueries]
    CertifiedScratch certified;    // columns and entries: the lists
    std::unique_ptr<FusedScan> scan;

    FusedScratch(
            const FlatKnnProblem& problem,
            const FusedPlan& plan,
            WorkspaceSlices& slices);
};

} // namespace faiss_bits
