/// Sums of 32 vectors' components by tensor cores (IvfCodeFloors.cuh).
#pragma once

#include "kernels/ivf/IvfCodeFloorsTable.cuh"
#include "kernels/ivf/IvfCodeStage.cuh"

namespace faiss_bits {

/// Of a warp.
template <Metric kMetric>
struct IvfCodeFloorsSums {
    using Table = IvfCodeFloorsTable<kMetric>;
    static constexpr int kStep = Table::kStep;
    static constexpr int kChunk = Table::kChunk;

    /// Of vectors 0 to 15 and 16 to 31: of L2 what matrix instructions have of
    /// the even and the odd ones, of inner products one of these.
    static constexpr int kOfHalf = kMetric == Metric::L2 ? 2 : 1;
    float sums[2][kOfHalf][4] = {};

    /// Of all components. Behind the last one numbers are zeros, whatever the
    /// codes.
    __device__ __forceinline__ void add(
            const IvfCodeStage& codes,
            const uint4* table,
            int d) {
        uint32_t from = codes.matrices();
#pragma unroll 1
        for (int c = 0; c < d; c += kStep) {
#pragma unroll
            for (int i = 0; i < kStep / kChunk; ++i) {
                addChunk(
                        from + i * kChunk * kListGroup,
                        Table::numbersOf(table, d, c / kChunk + i));
            }
            from += kStep * kListGroup;
        }
    }

    /// The sum of vector `lane`.
    __device__ __forceinline__ float ofOwnVector() const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t two = lane % 16 / 2; // of the vectors' pairs, the row
        float own[2][2];                    // of each half: even and odd
        if constexpr (kMetric == Metric::L2) {
            // The diagonal.
            const bool isOdd = lane / 4 % 2 != 0;
            const uint32_t from = 4 * two + two / 2;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
#pragma unroll
                for (int o = 0; o < 2; ++o) {
                    const float* four = sums[h][o] + 2 * o;
                    own[h][o] = __shfl_sync(
                            kFullWarp, isOdd ? four[1] : four[0], from);
                }
            }
        } else {
            // The first column, and the second of less.
#pragma unroll
            for (int h = 0; h < 2; ++h) {
#pragma unroll
                for (int o = 0; o < 2; ++o) {
                    const float* both = sums[h][0] + 2 * o;
                    own[h][o] = __shfl_sync(
                            kFullWarp, Table::sumOf(both[0], both[1]), 4 * two);
                }
            }
        }
        const bool isOdd = lane % 2 != 0;
        return lane < 16 ? (isOdd ? own[0][1] : own[0][0])
                         : (isOdd ? own[1][1] : own[1][0]);
    }

   private:
    __device__ __forceinline__ void addChunk(
            uint32_t from,
            const typename Table::Numbers& numbers) {
        uint32_t words[4];
        IvfCodeStage::loadTurned(words, from);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            uint32_t a[4]; // even, odd, and both of the other components
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const uint32_t both = words[2 * h + i];
                a[2 * i] = Table::valueOf(evenOf(both), numbers, i);
                a[2 * i + 1] = Table::valueOf(oddOf(both), numbers, i);
            }
            if constexpr (kMetric == Metric::L2) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    addProducts(
                            sums[h][i % 2],
                            a[i / 2 * 2],
                            a[i / 2 * 2 + 1],
                            a[i]);
                }
            } else {
                mmaFloat16(sums[h][0], a, numbers.query);
            }
        }
    }

    /// As mmaFloat16(), of eight components: what is both a and b moves
    /// nowhere.
    __device__ __forceinline__ static void addProducts(
            float* c,
            uint32_t first,
            uint32_t second,
            uint32_t b) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(first), "r"(second), "r"(b));
    }

    /// Codes of two components, of one vector of two; as float16 times 2^-24.
    __device__ __forceinline__ static uint32_t evenOf(uint32_t word) {
        return word & 0x00ff00ff;
    }
    __device__ __forceinline__ static uint32_t oddOf(uint32_t word) {
        return __byte_perm(word, 0, 0x4341);
    }
};

} // namespace faiss_bits
