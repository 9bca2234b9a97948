#pragma once

#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

#include "kernels/words/WordIndex.h"
#include "kernels/words/gpu/GpuWords.h"

/// The GPU behind EditDistanceIndex. Not part of the API.
namespace faiss_bits::detail {

/// The words of an index on the current device, with results on the host. One
/// search at a time; others wait.
class WordsOnGpu {
   public:
    /// Why there is no GPU, or an empty text.
    static std::string problem();

    /// mostResults  of one run: 28 bytes of memory on the GPU for each
    explicit WordsOnGpu(
            const words::WordIndex& index,
            idx_t mostResults = idx_t(1) << 27);
    ~WordsOnGpu();
    WordsOnGpu(const WordsOnGpu&) = delete;
    WordsOnGpu& operator=(const WordsOnGpu&) = delete;

    /// False if the GPU cannot search so; throws Error that says why if it
    /// must.
    bool takes(
            const words::LetterWords& queries,
            uint32_t maxDistance,
            const words::WordOptions& options,
            bool mustBeGpu) const;

    /// WordIndex::range of queries in the dictionary's letters.
    words::WordRange range(
            const words::LetterWords& queries,
            uint32_t maxDistance,
            const words::WordOptions& options);

    /// In one line; `onCpu` is that of what the GPU does not take.
    std::string plan(
            const words::WordIndex& index,
            idx_t queryLength,
            idx_t maxDistance,
            const words::WordOptions& options,
            const std::string& onCpu) const;

   private:
    /// Of some queries, behind the results so far.
    void rangePart(
            const words::LetterWords& queries,
            idx_t first,
            idx_t count,
            uint32_t maxDistance,
            words::Method method,
            words::WordRange& out);

    const words::WordIndex& index_;
    idx_t mostResults_;
    int device_ = 0;
    cudaStream_t stream_ = nullptr;
    words::GpuWords gpu_;
    std::mutex mutex_;
};

} // namespace faiss_bits::detail
