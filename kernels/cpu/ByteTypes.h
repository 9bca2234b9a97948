#pragma once

#include "kernels/cpu/KernelTypes.h"

/// Canonical distances of all pairs by matrix instructions on bytes (AMX), for
/// certified searches that want much of the vectors.
///
/// A component is an integer of 31 bits times a unit of its row, a power of
/// two, and the integer is four digits of 8 bits. Of the 16 products of digits
/// of a pair the 13 largest are summed, each exactly. The distance that they
/// make is known to within a bound of the pair (docs/bounds_cpu.md). Where all
/// numbers within it round to one float32, that is the canonical distance; else
/// the pair is computed as it is defined.
namespace faiss_bits::cpu {

constexpr int kByteDigits = 4;
constexpr int kByteStep = 64; ///< components of a matrix instruction

/// Values of a packed row behind its digits, 8 bytes each: the sum of its
/// squares, its unit, its largest component, the sum of what the integers leave
/// of all (both at most), where it is, and the dimension; of a query also the
/// share of roundings, and what digits that are left out may come to.
constexpr int kByteExtras = 16;

/// Values of a packed row. A component is one, as it is four digits.
constexpr int bytePanelDepth(int depth) {
    return (depth + kByteStep - 1) / kByteStep * kByteStep + kByteExtras;
}

/// 256 times the sum of products of first digits, which are 64 at most, and
/// that of first and second ones are below 2^31 together.
constexpr int kMostByteDepth = 2000;

/// Kernels of one instruction set; panels have bytePanelDepth values a row.
struct ByteKernels {
    /// As CommonKernels; no terms of vectors, those of queries are 0.
    void (*packVectors)(const PackJob<float>&, KernelMetric) = nullptr;
    void (*packQueriesL2)(const PackJob<float>&, KernelMetric) = nullptr;
    void (*packQueriesProduct)(const PackJob<float>&, KernelMetric) = nullptr;
    /// As MetricKernels::runTiles, all components in one block: canonical keys.
    void (*runTilesL2)(const TileJob<float>&) = nullptr;
    void (*runTilesProduct)(const TileJob<float>&) = nullptr;
    /// Pairs of packed rows for which the bytes are not enough.
    idx_t (*countInDoubt)(
            const float* queries,
            idx_t numQueries,
            const float* vectors,
            idx_t numVectors,
            int depth,
            bool isProduct) = nullptr;

    explicit operator bool() const {
        return packVectors;
    }
};

/// Those compiled for a target; none where the machine has no such
/// instructions, or the system does not let the process use them.
ByteKernels byteKernelsFor(int64_t target);

} // namespace faiss_bits::cpu
