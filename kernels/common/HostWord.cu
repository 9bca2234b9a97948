#include "kernels/common/HostWord.h"

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"

namespace faiss_bits {

namespace {

/// Pinned memory that every device can write, at the same address.
class PinnedWord {
   public:
    PinnedWord() {
        void* memory = nullptr;
        if (cudaHostAlloc(
                    &memory,
                    sizeof(uint32_t),
                    cudaHostAllocPortable | cudaHostAllocMapped) ==
            cudaSuccess) {
            word_ = static_cast<uint32_t*>(memory);
        } else {
            (void)cudaGetLastError();
        }
    }
    ~PinnedWord() {
        if (word_) {
            (void)cudaFreeHost(word_); // the driver may be gone
        }
    }
    PinnedWord(const PinnedWord&) = delete;
    PinnedWord& operator=(const PinnedWord&) = delete;

    uint32_t* get() const {
        return word_;
    }

   private:
    uint32_t* word_ = nullptr;
};

struct WordParams {
    const uint32_t* from = nullptr;
    volatile uint32_t* to = nullptr;
};

__global__ void copyWordKernel(const __grid_constant__ WordParams params) {
    allowNext();
    waitForPrevious();
    *params.to = *params.from;
}

} // namespace

uint32_t waitForWord(const uint32_t* word, cudaStream_t stream) {
    static thread_local const PinnedWord pinned;
    uint32_t copy = 0;
    if (pinned.get()) {
        launchAfterPrevious(
                copyWordKernel, dim3(1), 1, 0, stream, {word, pinned.get()});
    } else {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                &copy, word, sizeof(copy), cudaMemcpyDeviceToHost, stream));
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return pinned.get() ? *static_cast<volatile uint32_t*>(pinned.get()) : copy;
}

} // namespace faiss_bits
