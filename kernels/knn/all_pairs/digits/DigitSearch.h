#pragma once

#include "kernels/common/Workspace.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/all_pairs/digits/DigitPairs.h"

/// All pairs by products of digits: what a search of some queries at a time
/// keeps, and what it is expected to take.
namespace faiss_bits {

/// Whether the problem is one for it: L2, inner product or cosine of up to 2048
/// components, vectors row by row, Hopper.
bool takesDigits(const FlatKnnProblem& problem);

/// Whether it is worth a look at what it is expected to take.
bool digitsMayPay(const FlatKnnProblem& problem);

/// Microseconds that the image of the vectors is expected to take, and the
/// kernels that compute the distances of so many queries (H100).
double digitVectorsMicroseconds(const FlatKnnProblem& problem);
double digitPairsMicroseconds(const FlatKnnProblem& problem, idx_t rows);

class DigitScratch {
   public:
    /// Of up to tileQueries queries at a time.
    void take(
            const FlatKnnProblem& problem,
            idx_t tileQueries,
            WorkspaceSlices& slices);

    /// Enqueues the image of the vectors. Once, before the first run().
    void begin(
            const FlatKnnProblem& problem,
            const VectorsParams& vectors,
            cudaStream_t stream) const;

    /// Enqueues the distances of the queries of `search`, the launch-th ones.
    void run(
            const FlatKnnProblem& problem,
            const CertifiedParams& search,
            idx_t launch,
            float* distances,
            int64_t stride,
            cudaStream_t stream) const;

    /// What the last run() left to others, on the device.
    const UnsurePairList& unsure() const {
        return unsure_;
    }

   private:
    DigitImage vectors_;
    DigitImage queries_;
    uint32_t* used_ = nullptr; // of the vectors, of queries in turn
    UnsurePairList unsure_;    // counts and marks are one array
};

} // namespace faiss_bits
