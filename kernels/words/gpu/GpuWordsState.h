#pragma once

#include "kernels/words/gpu/DeviceGroups.h"
#include "kernels/words/gpu/GpuWords.h"

namespace faiss_bits::words {

/// What GpuWords keeps on the device, and the steps of a search
/// (RangeSearch.cu).
struct GpuWords::State {
    uint32_t numLetters = 0, numNodes = 0, numWords = 0, longest = 0;
    DeviceMemory<TrieNode> nodes;
    DeviceMemory<uint32_t> parents, ids;
    const Dictionary* dictionary = nullptr; // for what is copied later

    DeviceGroups byLength, byPlace, centers, buckets, pivots;
    DeviceMemory<uint32_t> radii;
    DeviceMemory<uint16_t> toPivots;
    uint32_t numCenters = 0, numPivots = 0;

    // Queries.
    DeviceMemory<uint32_t> queryLetters;
    DeviceMemory<idx_t> queryBegins;
    DeviceMemory<uint64_t> keys, keysSorted;
    DeviceMemory<uint32_t> numbers, order;
    DeviceMemory<uint32_t> longOnes;
    DeviceMemory<uint64_t> tables; // of long queries
    DeviceMemory<unsigned char> scratch;

    // Results.
    DeviceMemory<Count> counts; // of the queries, then the total
    DeviceMemory<uint64_t> found;
    DeviceMemory<uint64_t> rows;
    DeviceMemory<idx_t> limits, outIds;
    DeviceMemory<int32_t> outDistances;

    /// Puts queries that begin alike together: those of less than 32 letters
    /// first, then those of less than 64; behind them those that no trie takes.
    void sortQueries(const DeviceQueries& queries, cudaStream_t stream);
    /// Appends what is found of the queries of less than 64 letters.
    void walk(const DeviceQueries& queries, uint32_t most, cudaStream_t stream);
    void scan(
            const DeviceQueries& queries,
            uint32_t most,
            Method method,
            cudaStream_t stream);
    /// And of the others; the method is none that needs a trie.
    void scanLong(
            const DeviceQueries& queries,
            uint32_t most,
            Method method,
            cudaStream_t stream);
    /// Places of all results from their numbers: limits, of which the last is
    /// the total. Waits for it.
    idx_t makeLimits(const DeviceQueries& queries, cudaStream_t stream);
    void makeRows(
            const DeviceQueries& queries,
            idx_t total,
            cudaStream_t stream);

   private:
    FoundParams foundParams(const DeviceQueries& queries, uint32_t most);
    ScanParams scanParams(
            const DeviceQueries& queries,
            uint32_t most,
            Method method);
};

} // namespace faiss_bits::words
