#pragma once

#include "kernels/select/SelectParams.h"
#include "research/queues/PartialBitonicSelect.h"

namespace faiss_bits {

/// What a row is made of.
enum class SortSource : uint8_t {
    Keys,
    Entries, ///< [rows, length], results of an earlier pass
    Queues   ///< what QueueParams::outQueues holds
};

/// What the partial sorting kernels get by value.
struct PartialBitonicParams {
    SelectParams select; // firstRow, splits, outCandidates: of this launch
    DataType keyType = DataType::Float32;
    SortSource source = SortSource::Keys;
    const uint64_t* entries = nullptr; // rows from firstRow on
    idx_t length = 0;                  // of a row, in entries of the source
    idx_t segment = 0;                 // of a block
    int listSize = 0;                  // power of two, k <= listSize

    // Queues only.
    int queueSize = 0;
    int lanesLog = 0;

    bool buffered = false;
    int readsPerThread = 1;
    bool prefetch = false;
};

} // namespace faiss_bits
