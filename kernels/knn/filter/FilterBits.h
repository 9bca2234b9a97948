#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"

/// Filters as FlatKnnProblem takes them: bits, and lists made of bits. Bit i %
/// 32 of word i / 32 is that of vector i. What is written here has zeros
/// behind the last vector, n >= 0, and everything enqueues and never waits.
namespace faiss_bits {

/// Words that the bits of n vectors take.
constexpr idx_t filterWords(idx_t n) {
    return (n + 31) / 32;
}

/// Exactly the vectors first .. end - 1 of 0 .. n - 1; any first and end.
void runRangeBits(
        uint32_t* bits,
        idx_t n,
        idx_t first,
        idx_t end,
        cudaStream_t stream);

/// Adds the vectors of a list on the device, in any order, repeats allowed.
/// Ids outside 0 .. n - 1 are left out.
void runAddIdBits(
        uint32_t* bits,
        idx_t n,
        const idx_t* ids,
        idx_t numIds,
        cudaStream_t stream);

/// Bits behind the last vector become zero: of bits from elsewhere.
void runClearTail(uint32_t* bits, idx_t n, cudaStream_t stream);

void runInvertBits(uint32_t* bits, idx_t n, cudaStream_t stream);

enum class BitOperation : uint8_t { And, Or, Xor };

/// bits = bits <operation> other.
void runCombineBits(
        BitOperation operation,
        uint32_t* bits,
        const uint32_t* other,
        idx_t n,
        cudaStream_t stream);

/// The vectors whose bits are set, ascending, then -1: [capacity]. Those beyond
/// the capacity are left out. Reads the bits twice.
size_t idsOfBitsWorkspaceBytes(idx_t n);
void runIdsOfBits(
        const uint32_t* bits,
        idx_t n,
        int32_t* ids,
        idx_t capacity,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits
