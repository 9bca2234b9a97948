#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define BITS_STRIP __host__ __device__
#else
#define BITS_STRIP
#endif

namespace faiss_bits {

/// The two fours of vectors with the nearest ones of a strip, which is a part
/// of all vectors.
struct NearestStrip {
    float values[2];     ///< of the nearest of a four; -inf: there is none
    uint32_t columns[2]; ///< the first of a four: nearestColumn()
};

/// Row of member i, 0 to 3, of a four; it may be beyond the last vector.
BITS_STRIP constexpr uint32_t nearestColumn(uint32_t first, uint32_t i) {
    return first + i / 2 * 8 + i % 2;
}

/// Where a scan leaves, for every query and strip, the nearest vectors and a
/// bound of all others.
///
/// A value is n_q - key for L2 and cosine, and -key for inner products, so the
/// larger, the nearer: key as runTensorScan has it, n_q the query's norm. It
/// may be off by kNearestValueError of itself more than that.
struct NearestStrips {
    NearestStrip* strips = nullptr; ///< [rows, perRow]
    /// [rows, perRow]: no other vector of the strip has a larger value;
    /// infinity where nothing is known. A vector whose value is NaN makes this
    /// infinite for inner products; for L2 it counts as none (its distance is
    /// NaN or infinite), unless all of a four are NaN or one is infinite.
    float* rests = nullptr;
    uint32_t perRow = 0;
};

/// Numbers of fours lie in a value's last bits: up to 4 of them.
constexpr double kNearestValueError = 0x1p-18;

} // namespace faiss_bits

#undef BITS_STRIP
