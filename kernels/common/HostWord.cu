#include "kernels/common/HostWord.h"

#include <map>
#include <mutex>
#include <vector>

#include "kernels/common/ContextId.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"

namespace faiss_bits {

namespace {

/// Pinned memory that the device can write, in one context of it: gone where a
/// program resets the device.
struct Word {
    uint32_t* at = nullptr;
    uint64_t context = 0;
};

/// Words of threads that have ended, by device, for those that come.
struct SpareWords {
    std::mutex mutex;
    std::map<int, std::vector<Word>> words;
};

SpareWords& spareWords() {
    // Never destroyed: threads end when a program does.
    static auto& spare = *new SpareWords;
    return spare;
}

/// Of the current device. Its `at` is null where there is no such memory.
Word findWord(int device, uint64_t context) {
    SpareWords& spare = spareWords();
    {
        const std::lock_guard<std::mutex> lock(spare.mutex);
        auto& words = spare.words[device];
        while (!words.empty()) {
            const Word word = words.back();
            words.pop_back();
            if (word.context == context) {
                return word;
            }
        }
    }
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, sizeof(uint32_t), cudaHostAllocMapped) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        return {};
    }
    return {static_cast<uint32_t*>(memory), context};
}

/// Those of a thread.
class ThreadWords {
   public:
    ThreadWords() = default;
    ThreadWords(const ThreadWords&) = delete;
    ThreadWords& operator=(const ThreadWords&) = delete;
    ~ThreadWords() {
        SpareWords& spare = spareWords();
        const std::lock_guard<std::mutex> lock(spare.mutex);
        for (const auto& [device, word] : words_) {
            if (word.at) {
                spare.words[device].push_back(word);
            }
        }
    }

    /// Of the current device, or null.
    uint32_t* get() {
        int device = 0;
        BITS_CUDA_CHECK(cudaGetDevice(&device));
        const uint64_t context = contextId();
        Word& word = words_[device];
        if (!word.at || word.context != context) {
            word = findWord(device, context);
        }
        return word.at;
    }

   private:
    std::map<int, Word> words_;
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
    static thread_local ThreadWords words;
    uint32_t* const pinned = words.get();
    uint32_t copy = 0;
    if (pinned) {
        launchAfterPrevious(
                copyWordKernel, dim3(1), 1, 0, stream, {word, pinned});
    } else {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                &copy, word, sizeof(copy), cudaMemcpyDeviceToHost, stream));
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return pinned ? *static_cast<volatile uint32_t*>(pinned) : copy;
}

} // namespace faiss_bits
