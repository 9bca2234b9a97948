// Sums of products of digits of a tile, by the matrix instructions on bytes:
// ByteTypes.h.

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/cpu/ByteTypes.h"

#if defined(FAISS_BITS_KERNELS_CPU_BYTESUMS_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_BYTESUMS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_BYTESUMS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_BYTESUMS_INL_H_
#endif

// This file may be included once for each target.
#undef FAISS_BITS_TILE_ZERO
#undef FAISS_BITS_TILE_LOAD
#undef FAISS_BITS_TILE_STORE
#undef FAISS_BITS_TILE_ADD

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {

constexpr int kByteRows = 12, kByteWidth = 32, kByteHalf = 16;
constexpr int kByteSums = 5; ///< tile registers 0 to 4

/// The tile registers of a thread, as long as this lives: rows of 64 bytes, 12
/// of sums and of queries, 16 of vectors (register 5). Assembly, as these are
/// not among the instructions that this file is compiled for.
class ByteRegisters {
   public:
    ByteRegisters() {
        struct alignas(64) {
            uint8_t palette = 1, start = 0, reserved[14] = {};
            uint16_t rowBytes[16] = {};
            uint8_t rows[16] = {};
        } config;
        for (int i = 0; i < 8; ++i) {
            config.rowBytes[i] = kByteStep;
            config.rows[i] = i == 5 ? kByteHalf : kByteRows;
        }
        asm volatile("ldtilecfg %0" : : "m"(config));
    }
    ByteRegisters(const ByteRegisters&) = delete;
    ByteRegisters& operator=(const ByteRegisters&) = delete;
    ~ByteRegisters() {
        asm volatile("tilerelease");
    }
};

// clang-format off
#define FAISS_BITS_TILE_ZERO(tile) \
    asm volatile("tilezero %%tmm" #tile : :)
#define FAISS_BITS_TILE_LOAD(tile, from) \
    asm volatile("tileloadd (%0,%1,1), %%tmm" #tile \
                 : : "r"(from), "r"(idx_t(kByteStep)) : "memory")
#define FAISS_BITS_TILE_STORE(tile, to) \
    asm volatile("tilestored %%tmm" #tile ", (%0,%1,1)" \
                 : : "r"(to), "r"(idx_t(kByteStep)) : "memory")
/// Queries stand in 6 or 7, vectors in 5.
#define FAISS_BITS_TILE_ADD(sums, queries) \
    asm volatile("tdpbssd %%tmm5, %%tmm" #queries ", %%tmm" #sums : :)
// clang-format on

/// Sums of products of digits of 12 queries and 16 vectors: of digits i and j
/// in the matrix i + j, up to the fifth. In an order in which few matrices are
/// loaded twice, and an addition seldom waits for the one before. In between
/// `finishRow` is called for the 12 rows of what was summed before: a processor
/// looks ahead over some hundreds of operations, and does both at a time then.
template <class FinishRow>
HWY_INLINE void sumBytes(
        const char* queries,
        const char* vectors,
        int steps,
        const FinishRow& finishRow) {
    constexpr idx_t kQueries = kByteRows * kByteStep;
    constexpr idx_t kVectors = kByteWidth * kByteStep;
    int row = 0;
    FAISS_BITS_TILE_ZERO(0);
    FAISS_BITS_TILE_ZERO(1);
    FAISS_BITS_TILE_ZERO(2);
    FAISS_BITS_TILE_ZERO(3);
    FAISS_BITS_TILE_ZERO(4);
    for (int step = 0; step < steps; ++step) {
        const char* const q = queries + step * kByteDigits * kQueries;
        const char* const x = vectors + step * kByteDigits * kVectors;
        const auto finishRows = [&](int quarter) HWY_ATTR {
            const int end = (4 * step + quarter) * kByteRows / (4 * steps);
            for (; row < end; ++row) {
                finishRow(row);
            }
        };
        FAISS_BITS_TILE_LOAD(5, x);
        FAISS_BITS_TILE_LOAD(6, q);
        FAISS_BITS_TILE_ADD(0, 6);
        FAISS_BITS_TILE_LOAD(7, q + kQueries);
        FAISS_BITS_TILE_ADD(1, 7);
        FAISS_BITS_TILE_LOAD(6, q + 2 * kQueries);
        FAISS_BITS_TILE_ADD(2, 6);
        FAISS_BITS_TILE_LOAD(7, q + 3 * kQueries);
        FAISS_BITS_TILE_ADD(3, 7);
        finishRows(1);
        FAISS_BITS_TILE_LOAD(5, x + kVectors);
        FAISS_BITS_TILE_ADD(4, 7);
        FAISS_BITS_TILE_ADD(3, 6);
        FAISS_BITS_TILE_LOAD(7, q);
        FAISS_BITS_TILE_ADD(1, 7);
        FAISS_BITS_TILE_LOAD(7, q + kQueries);
        FAISS_BITS_TILE_ADD(2, 7);
        finishRows(2);
        FAISS_BITS_TILE_LOAD(5, x + 2 * kVectors);
        FAISS_BITS_TILE_ADD(4, 6);
        FAISS_BITS_TILE_ADD(3, 7);
        FAISS_BITS_TILE_LOAD(6, q);
        FAISS_BITS_TILE_ADD(2, 6);
        finishRows(3);
        FAISS_BITS_TILE_LOAD(5, x + 3 * kVectors);
        FAISS_BITS_TILE_ADD(4, 7);
        FAISS_BITS_TILE_ADD(3, 6);
        finishRows(4);
    }
}

HWY_INLINE void storeSums(int32_t* sums) {
    constexpr idx_t kSums = kByteRows * kByteHalf;
    FAISS_BITS_TILE_STORE(0, sums);
    FAISS_BITS_TILE_STORE(1, sums + kSums);
    FAISS_BITS_TILE_STORE(2, sums + 2 * kSums);
    FAISS_BITS_TILE_STORE(3, sums + 3 * kSums);
    FAISS_BITS_TILE_STORE(4, sums + 4 * kSums);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
