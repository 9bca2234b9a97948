/// Components of vectors on their way to shared memory while earlier ones are
/// multiplied: of 32 vectors at a time, by each warp for itself.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Bytes: of a copy, 16 or 4.
template <class T, int kBytes>
struct StagedVectors {
    static constexpr int kDims = 32; // components of a stage
    static constexpr int kStages = 3;
    static constexpr int kPieceDims = kBytes / sizeof(T);
    static constexpr int kPieces = kDims / kPieceDims;
    /// Components that a lane reads at a time, 16 bytes. Eight lanes read
    /// different banks.
    static constexpr int kPack = 16 / sizeof(T);
    static constexpr int kPitch = kDims + kPack;
    static constexpr int kStageValues = kWarpSize * kPitch;
    static constexpr size_t kWarpBytes = kStages * kStageValues * sizeof(T);

    /// Rows must be whole copies.
    static bool canTake(const void* vectors, int64_t rowStride, int d) {
        return reinterpret_cast<uintptr_t>(vectors) % kBytes == 0 &&
                rowStride % kPieceDims == 0 && d % kPieceDims == 0;
    }

    T* memory; // kWarpBytes, aligned to 16 bytes

    /// Begins to copy components first .. first + kDims - 1 of 32 rows to a
    /// stage: zeros for those from d on, and of a row whose vector is below 0.
    /// Each lane knows one row's vector.
    __device__ __forceinline__ void copy(
            int stage,
            const T* vectors,
            int64_t rowStride,
            int first,
            int d,
            int32_t vectorOfLane) const {
        constexpr int kRows = kWarpSize / kPieces; // a step
        const int lane = threadIdx.x % kWarpSize;
        const int at = lane % kPieces * kPieceDims;
        const bool isThere = first + at < d;
        const T* from = vectors + (isThere ? first + at : 0);
        uint32_t to = sharedAddress(
                memory + stage * kStageValues + lane / kPieces * kPitch + at);
#pragma unroll
        for (int step = 0; step < kPieces; ++step) {
            const int32_t vector = __shfl_sync(
                    kFullWarp, vectorOfLane, step * kRows + lane / kPieces);
            const bool copies = isThere && vector >= 0;
            const T* row = from + (copies ? int64_t(vector) * rowStride : 0);
            if constexpr (kBytes == 16) {
                copyAsync(to, row, copies ? 16 : 0);
            } else {
                copyAsyncByL1<4>(to, row, copies ? 4 : 0);
            }
            to += uint32_t(kRows * kPitch * sizeof(T));
        }
    }

    /// Ends a set of copies; there is one for every stage, if only an empty
    /// one.
    __device__ __forceinline__ static void endCopy() {
        endCopies();
    }

    /// Until all sets but the last kStages - 2 have arrived, for all lanes.
    __device__ __forceinline__ static void wait() {
        waitForCopies<kStages - 2>();
        __syncwarp();
    }

    /// Components first .. first + kPack - 1 of this lane's row.
    __device__ __forceinline__ void read(
            int stage,
            int first,
            float (&values)[kPack]) const {
        unpack(*reinterpret_cast<const uint4*>(
                       memory + stage * kStageValues +
                       threadIdx.x % kWarpSize * kPitch + first),
               values);
    }

    __device__ __forceinline__ static void unpack(
            const uint4& bits,
            float (&values)[kPack]) {
        union {
            uint4 bits;
            T values[kPack];
        } pack;
        pack.bits = bits;
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
            values[i] = toFloat(pack.values[i]);
        }
    }
};

} // namespace faiss_bits
