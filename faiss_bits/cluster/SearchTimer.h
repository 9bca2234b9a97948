#pragma once

#include <vector>

#include <cuda_runtime_api.h>

#include "faiss_bits/cluster/ClusteringRun.h"

namespace faiss_bits::gpu::detail {

/// Times pieces of work on a stream by events, which also say how many of them
/// are under way.
class ClusteringRun::SearchTimer {
   public:
    explicit SearchTimer(cudaStream_t stream) : stream_(stream) {}
    ~SearchTimer();
    SearchTimer(const SearchTimer&) = delete;
    SearchTimer& operator=(const SearchTimer&) = delete;

    void begin();
    void end();

    /// Waits until no more than one piece is under way; can be interrupted.
    void waitForLastButOne() const;

    /// Seconds of all pieces since the last call; they have to be done.
    double takeSeconds();

   private:
    struct Piece {
        cudaEvent_t begin = nullptr;
        cudaEvent_t end = nullptr;
    };

    const cudaStream_t stream_;
    std::vector<Piece> pieces_; ///< kept from one iteration to the next
    size_t used_ = 0;
};

} // namespace faiss_bits::gpu::detail
