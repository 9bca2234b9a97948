#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "kernels/common/Error.h"
#include "kernels/words/Dictionary.h"
#include "kernels/words/ListOfClusters.h"
#include "kernels/words/Method.h"
#include "kernels/words/Pivots.h"

/// Words near to words by edit distance, on the GPU.
namespace faiss_bits::words {

/// Queries on the device.
struct DeviceQueries {
    const uint32_t* letters = nullptr; ///< of all, one behind the other
    const idx_t* begins = nullptr;     ///< [count + 1]
    idx_t count = 0;
    idx_t below32 = 0, below64 = 0; ///< how many have less letters
    uint32_t longest = 0;           ///< letters
    uint32_t longestBelow64 = 0;
    /// Those of 64 letters and more, shortest first, on the device.
    const uint32_t* longOnes = nullptr;
    std::vector<uint32_t> longBlocks; ///< of 64 letters, of each of them
};

/// Results on the device.
struct DeviceRange {
    const idx_t* limits = nullptr;      ///< [count + 1]
    const int32_t* distances = nullptr; ///< [total]
    const idx_t* ids = nullptr;         ///< [total], ascending within a query
    idx_t total = 0;
};

/// A dictionary's copy on the current device, and its searches there. One call
/// at a time; the current device is that of the constructor in every call.
class GpuWords {
   public:
    static constexpr uint32_t kLongestQuery = 4095; ///< letters
    static constexpr uint32_t kLongestWord = 4095;
    static constexpr uint32_t kLongestOfTrie = 63;        ///< query
    static constexpr idx_t kMostQueries = idx_t(1) << 20; ///< of a call
    static constexpr uint32_t kMostErrors = 4;            ///< of the trie

    /// Why the GPU cannot search so, as a text; empty if it can.
    static std::string refusal(
            const Dictionary& dictionary,
            Method method,
            uint32_t longestQuery,
            uint32_t maxDistance);
    /// What Auto is for queries of so many letters.
    static Method choose(
            Method method,
            uint32_t queryLength,
            uint32_t maxDistance);

    /// Throws Error when memory is short.
    explicit GpuWords(const Dictionary& dictionary);
    ~GpuWords();

    /// For the methods of these; copied once.
    void setClusters(const ListOfClusters& clusters);
    void setPivots(const Pivots& pivots);
    bool hasClusters() const;
    bool hasPivots() const;

    /// Copies queries in the dictionary's letters, until the next upload.
    DeviceQueries upload(
            const LetterWords& queries,
            idx_t first,
            idx_t count,
            cudaStream_t stream);

    /// All words with distance <= maxDistance, until the next call.
    ///
    /// Result  of WordIndex::range, in every bit
    /// Stream  waits for it, to learn how many there are
    /// Memory  kept for the next call: 28 bytes a result, 60 a query; tables of
    ///         queries over 63 letters where the alphabet is large, 256 MiB
    /// Errors  throws Error with what refusal() says, for more than
    /// kMostQueries,
    ///         and naming the total where there are more than `mostResults` or
    ///         memory is short
    /// Cost    trie: the nodes that are near to any of 32 queries that begin
    ///         alike, in lanes; the others: a block for every query, as
    ///         Barrientos et al. 2012, IV (several where there are few
    ///         queries). Of queries over 63 letters only words are compared
    ///         whose length is near enough, in length x length / 64 steps
    DeviceRange range(
            const DeviceQueries& queries,
            uint32_t maxDistance,
            Method method,
            idx_t mostResults,
            cudaStream_t stream);

   private:
    struct State;
    std::unique_ptr<State> state_;
};

/// More results than a call may have.
class TooManyResults : public Error {
   public:
    using Error::Error;
};

} // namespace faiss_bits::words
