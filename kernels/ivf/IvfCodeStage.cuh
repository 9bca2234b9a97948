/// The codes of 32 vectors in shared memory, as matrices of them are read from
/// there: interleaved codes of 8 bits (IvfCodeFloors.cuh).
#pragma once

#include <utility>

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/ivf/ListPlaces.cuh"

namespace faiss_bits {

struct IvfCodeStage {
    alignas(16) uint8_t bytes[kMostFloorDims * kListGroup];

    /// Begins to copy a group's codes, by a warp. What has not come by a set of
    /// copies (AsyncCopy.cuh) is there behind a barrier of the warp.
    __device__ __forceinline__ void copy(const uint8_t* from, uint32_t count) {
        const uint32_t lane = threadIdx.x % kWarpSize;
        // The same of all groups of a list.
        if (reinterpret_cast<uintptr_t>(from) % kCopy == 0) {
            const uint32_t first = lane * kCopy;
            copyAll(sharedAddress(bytes) + placeOf(first),
                    from + first,
                    int(count - first),
                    Copies());
        } else {
            for (uint32_t b = lane; b < count; b += kWarpSize) {
                bytes[placeOf(b)] = from[b];
            }
        }
    }

    /// For loadTurned(), the address of a lane: rows of matrices are components
    /// 0 to 7 and 8 to 15 of vectors 0 to 15, then of the others. The next
    /// sixteen components are 16 kListGroup bytes behind.
    __device__ __forceinline__ uint32_t matrices() const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        return sharedAddress(bytes) +
                placeOf(lane % 16 * kListGroup + lane / 16 * 16);
    }

    /// Four matrices of eight rows of 16 bytes, lane i giving the address of
    /// row i: of each the lane gets bytes 2 (lane / 4) and the next one of rows
    /// 2 (lane % 4) and the next one.
    __device__ __forceinline__ static void loadTurned(
            uint32_t (&out)[4],
            uint32_t shared) {
        asm volatile(
                "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                "{%0, %1, %2, %3}, [%4];"
                : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                : "r"(shared)
                : "memory");
    }

   private:
    static constexpr int kCopy = 16; // bytes
    static constexpr int kOfWarp = kWarpSize * kCopy;
    using Copies = std::make_integer_sequence<
            int,
            kMostFloorDims* int(kListGroup) / kOfWarp>;

    /// Where a byte of codes lies: halves of every other four components are
    /// changed, so that matrices of eight rows meet all banks.
    __device__ __forceinline__ static uint32_t placeOf(uint32_t byte) {
        return byte ^ (byte >> 3 & 16);
    }

    /// As copyAsync(), so many bytes behind both addresses.
    template <int kBehind>
    __device__ __forceinline__ static void copyBehind(
            uint32_t shared,
            const void* global) {
        asm volatile(
                "cp.async.cg.shared.global [%0 + %2], [%1 + %2], 16;" ::"r"(
                        shared),
                "l"(global),
                "n"(kBehind)
                : "memory");
    }

    /// Of a lane, as many as begin before `left` bytes.
    template <int... kAt>
    __device__ __forceinline__ static void copyAll(
            uint32_t shared,
            const uint8_t* from,
            int left,
            std::integer_sequence<int, kAt...>) {
        const auto copyOne = [&]<int kBehind>() {
            if (left > kBehind) {
                copyBehind<kBehind>(shared, from);
            }
        };
        (copyOne.template operator()<kAt * kOfWarp>(), ...);
    }
};

} // namespace faiss_bits
