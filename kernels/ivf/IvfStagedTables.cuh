/// What a block of a staged scan has behind its stages.
#pragma once

#include "kernels/ivf/IvfGroupStages.cuh"

namespace faiss_bits {

/// Queries in float64, and of scalar codes steps and starts.
template <ListCoding kCoding>
struct IvfStagedTables {
    double* queries; // [numQueries, padded]
    float* steps;    // [padded]
    float* starts;   // [padded]
    void* behind;    // on eight bytes

    BITS_HOST_DEVICE static constexpr size_t bytes(int d, int numQueries) {
        return size_t(ivfDirectPadded(d)) *
                (numQueries * sizeof(double) +
                 (kIsScalar<kCoding> ? 2 * sizeof(float) : 0));
    }

    /// memory: on eight bytes.
    __device__ __forceinline__
    IvfStagedTables(uint8_t* memory, int d, int numQueries)
            : queries(reinterpret_cast<double*>(memory)),
              steps(reinterpret_cast<float*>(
                      queries + numQueries * ivfDirectPadded(d))),
              starts(steps + ivfDirectPadded(d)),
              behind(memory + bytes(d, numQueries)) {}

    /// With zeros behind.
    __device__ __forceinline__ void writeQuery(
            const IvfParams& search,
            uint32_t row,
            int number) const {
        const float* from = search.queries + int64_t(row) * search.d;
        const int padded = ivfDirectPadded(search.d);
        for (int c = threadIdx.x; c < padded; c += kIvfDirectThreads) {
            queries[number * padded + c] = c < search.d ? double(from[c]) : 0.0;
        }
    }

    __device__ __forceinline__ void writeSteps(const IvfParams& search) const {
        if constexpr (kIsScalar<kCoding>) {
            writeIvfSteps(search, starts, steps);
        }
    }
};

} // namespace faiss_bits
