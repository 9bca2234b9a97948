#include "faiss_bits/cluster/SearchTimer.h"

#include "faiss_bits/common/Waiting.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

ClusteringRun::SearchTimer::~SearchTimer() {
    for (const Piece& piece : pieces_) {
        (void)cudaEventDestroy(piece.begin);
        (void)cudaEventDestroy(piece.end);
    }
}

void ClusteringRun::SearchTimer::begin() {
    if (used_ == pieces_.size()) {
        pieces_.emplace_back();
        BITS_CUDA_CHECK(cudaEventCreate(&pieces_.back().begin));
        BITS_CUDA_CHECK(cudaEventCreate(&pieces_.back().end));
    }
    BITS_CUDA_CHECK(cudaEventRecord(pieces_[used_].begin, stream_));
}

void ClusteringRun::SearchTimer::end() {
    BITS_CUDA_CHECK(cudaEventRecord(pieces_[used_].end, stream_));
    ++used_;
}

void ClusteringRun::SearchTimer::waitForLastButOne() const {
    throwIfInterrupted();
    if (used_ < 2) {
        return;
    }
    waitInterruptibly([&] {
        const cudaError_t status = cudaEventQuery(pieces_[used_ - 2].end);
        if (status == cudaErrorNotReady) {
            (void)cudaGetLastError();
            return false;
        }
        BITS_CUDA_CHECK(status);
        return true;
    });
}

double ClusteringRun::SearchTimer::takeSeconds() {
    double seconds = 0;
    for (size_t i = 0; i < used_; ++i) {
        float ms = 0;
        BITS_CUDA_CHECK(
                cudaEventElapsedTime(&ms, pieces_[i].begin, pieces_[i].end));
        seconds += ms / 1e3;
    }
    used_ = 0;
    return seconds;
}

} // namespace faiss_bits::gpu::detail
