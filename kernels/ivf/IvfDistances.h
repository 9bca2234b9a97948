#pragma once

#include "kernels/ivf/IvfKnn.h"
#include "kernels/ivf/IvfScratch.h"

namespace faiss_bits {

/// What kernels get of the queries first to first + rows - 1 of a search; their
/// columns are enqueued. Nothing is found yet, and no pair has a width.
/// areCounted: clears the counts of lists, and is told whether the pairs of
/// near probes are counted with the columns (IvfPairs.h); nullptr: they are
/// not.
IvfParams beginIvfRows(
        const IvfKnnProblem& problem,
        const IvfScratch& scratch,
        idx_t first,
        idx_t rows,
        cudaStream_t stream,
        bool* areCounted = nullptr);

/// Then what estimates read beside that.
void beginIvfEstimates(IvfParams& params, Metric metric);

/// Then appends what may be within the limits of rows, of all their lists.
void launchIvfFound(
        const IvfKnnProblem& problem,
        const IvfParams& params,
        cudaStream_t stream);

/// Then the canonical distances of all that was found.
void launchIvfFoundDistances(
        const IvfKnnProblem& problem,
        IvfRescoreParams& taken,
        cudaStream_t stream);

/// The canonical distances of all of their lists, to the matrix. The plan keeps
/// all of them.
void launchIvfDistances(
        const IvfKnnPlan& plan,
        const IvfKnnProblem& problem,
        IvfParams params,
        cudaStream_t stream);

} // namespace faiss_bits
