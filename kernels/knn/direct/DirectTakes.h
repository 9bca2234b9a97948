#pragma once

#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/direct/DirectLaunch.h"

/// Which searches of few pairs go by which kernels. Reads shape, types and
/// layouts alone.
namespace faiss_bits {

/// Larger k have much to look for, where groups are many.
constexpr int kMostOfOneBlock = 512;

using DirectLaunch =
        void (*)(const DirectScanParams&, DirectShape, int, cudaStream_t);

/// nullptr for metrics whose terms cost more than to read a component.
DirectLaunch directLaunchFor(Metric metric);

/// Whether all pairs of the problem can be had so.
bool takesDirect(const FlatKnnProblem& problem);

/// Vectors, or members of the list.
idx_t directPlaces(const FlatKnnProblem& problem);

/// What shares the pairs out.
DirectShape directShape(const FlatKnnProblem& problem);

struct DirectGroups {
    uint32_t count = 0;
    uint32_t logUnits = 0; // of kDirectUnit vectors each
};

DirectGroups directGroups(const FlatKnnProblem& problem);

/// Whether a block of each query has all of its keys in registers: blocks of
/// which a multiprocessor has one at a time.
bool hasFewKeys(const FlatKnnProblem& problem, idx_t keys);

/// Whether several blocks finish a query: while they have multiprocessors of
/// their own.
bool isSpread(const FlatKnnProblem& problem, uint32_t groups);

} // namespace faiss_bits
