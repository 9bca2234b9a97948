#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "faiss_bits/words/DeviceWordRange.h"
#include "kernels/words/WordIndex.h"
#include "kernels/words/gpu/GpuWords.h"

/// The GPU behind EditDistanceIndex. Not part of the API.
namespace faiss_bits::detail {

/// The words of an index on the current device. One search at a time; others
/// wait.
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

    /// The same with results on the device; those of `result` are replaced.
    void rangeOnDevice(
            const words::LetterWords& queries,
            uint32_t maxDistance,
            const words::WordOptions& options,
            DeviceWordRange& result);

    /// Results of the host as such of the device.
    void copyOf(const words::WordRange& range, DeviceWordRange& result);

    int device() const {
        return device_;
    }

    /// In one line; `onCpu` is that of what the GPU does not take.
    std::string plan(
            const words::WordIndex& index,
            idx_t queryLength,
            idx_t maxDistance,
            const words::WordOptions& options,
            const std::string& onCpu) const;

   private:
    /// What takes the results of queries, batch by batch.
    using Take =
            std::function<void(const words::DeviceRange& found, idx_t count)>;

    void inBatches(
            const words::LetterWords& queries,
            uint32_t maxDistance,
            const words::WordOptions& options,
            const Take& take);
    /// Enqueues; nothing where n is 0.
    template <class T>
    void copy(T* to, const T* from, size_t n, cudaMemcpyKind kind) const;
    /// Appends the limits of a batch, on the host; waits for the stream.
    void takeLimits(
            const words::DeviceRange& found,
            idx_t count,
            std::vector<idx_t>& limits) const;

    const words::WordIndex& index_;
    idx_t mostResults_;
    int device_ = 0;
    cudaStream_t stream_ = nullptr;
    words::GpuWords gpu_;
    std::mutex mutex_;
};

} // namespace faiss_bits::detail
