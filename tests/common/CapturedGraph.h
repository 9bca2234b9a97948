#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::test {

/// What a call enqueues on a stream, captured instead of run.
class CapturedGraph {
   public:
    /// Mode Global refuses all that waits and all that touches another stream,
    /// whatever thread does it.
    template <class Call>
    CapturedGraph(
            cudaStream_t stream,
            const Call& call,
            cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal)
            : stream_(stream) {
        BITS_CUDA_CHECK(cudaStreamBeginCapture(stream, mode));
        call();
        BITS_CUDA_CHECK(cudaStreamEndCapture(stream, &graph_));
    }
    CapturedGraph(const CapturedGraph&) = delete;
    CapturedGraph& operator=(const CapturedGraph&) = delete;
    ~CapturedGraph() {
        if (executable_) {
            EXPECT_EQ(cudaGraphExecDestroy(executable_), cudaSuccess);
        }
        EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    }

    size_t numNodes() const {
        size_t nodes = 0;
        BITS_CUDA_CHECK(cudaGraphGetNodes(graph_, nullptr, &nodes));
        return nodes;
    }

    /// On the stream, and waits.
    void launch(int times = 1) {
        if (!executable_) {
            BITS_CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
        }
        for (int i = 0; i < times; ++i) {
            BITS_CUDA_CHECK(cudaGraphLaunch(executable_, stream_));
        }
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
    }

   private:
    const cudaStream_t stream_;
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
};

} // namespace faiss_bits::test
