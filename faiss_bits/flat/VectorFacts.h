#pragma once

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/RowFacts.h"

namespace faiss_bits::gpu::detail {

/// What searches by some metrics must know of every vector (RowFacts, and
/// RowMaxima), kept from one search to the next: to find it is two reads of all
/// vectors, where the search of a query may be one.
///
/// The owner says when the vectors change: forget().
class VectorFacts {
   public:
    /// Gives the problem what its metric wants, found now if it is not there.
    /// While the stream is being captured into a graph nothing is found: no
    /// memory can be taken then, and the search finds it for itself.
    ///
    /// Memory   4 n bytes of the device, if the metric has RowFacts
    /// Errors   FaissException when memory is short
    void giveTo(FlatKnnProblem& problem, const GpuContext& context);

    void forget();

   private:
    RowFacts kind_ = RowFacts::None;
    faiss::gpu::GpuMemoryReservation memory_; // [n], then RowMaxima
};

} // namespace faiss_bits::gpu::detail
