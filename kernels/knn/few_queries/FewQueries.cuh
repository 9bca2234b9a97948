/// Distances of a few queries to many vectors, reading each vector once.
///
/// A group of `Lanes` lanes owns a vector and reads 4 of its components a
/// lane at a time; every query waits in shared memory. `Rows` vectors are in
/// work at once, so that a load of a query's components serves them all, and
/// so that that many loads are in flight.
///
/// Filtered: columns are the vectors of a list, or all of them with bits that
/// say which to read. What is left out is NaN.
///
/// Bound by: the read of the vectors for 1 to 4 queries; the subtractions and
/// multiply-adds, 2 a component and query, for 16.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/knn/few_queries/FewQueriesParams.h"

namespace faiss_bits {

constexpr int kFewQueriesThreads = 256;

template <class T>
struct alignas(4 * sizeof(T)) Quad {
    T values[4];
};

template <
        class T,
        int Lanes,
        int Queries,
        bool IsL2,
        bool VectorLoads,
        bool Filtered>
struct FewQueriesBody {
    // The numbers of the filtered vectors want registers too (with four, two
    // kernels of half vectors still spill 40 bytes). No bit of a distance
    // depends on it.
    static constexpr int kRows = Queries >= (Filtered ? 4 : 16) ? 4 : 8;
    static constexpr int kGroupsPerWarp = kWarpSize / Lanes;
    static constexpr int kChunk = Lanes * 4; // components at a time
    static constexpr int kVectorsPerWarp = kGroupsPerWarp * kRows;

    float* queries; // shared, [Queries, padded d], zeros behind d
    const FewQueriesParams& params;

    __device__ void run() {
        loadQueries();
        const int warpsPerBlock = kFewQueriesThreads / kWarpSize;
        const int64_t warp =
                int64_t(blockIdx.x) * warpsPerBlock + threadIdx.x / kWarpSize;
        const int64_t step = int64_t(gridDim.x) * warpsPerBlock;
        for (int64_t first = warp * kVectorsPerWarp; first < params.numVectors;
             first += step * kVectorsPerWarp) {
            takeVectors(first);
        }
    }

   private:
    __device__ int paddedDim() const {
        return (params.d + kChunk - 1) / kChunk * kChunk;
    }

    __device__ void loadQueries() {
        const int padded = paddedDim();
        const T* from = static_cast<const T*>(params.queries);
        for (int i = threadIdx.x; i < Queries * padded;
             i += kFewQueriesThreads) {
            const int q = i / padded;
            const int c = i % padded;
            queries[i] = q < params.numQueries && c < params.d
                    ? toFloat(from[int64_t(q) * params.d + c])
                    : 0.0f;
        }
        __syncthreads();
    }

    /// Component of this lane's j'th value of a chunk.
    __device__ __forceinline__ static int offset(int lane, int j) {
        return VectorLoads ? lane * 4 + j : j * Lanes + lane;
    }

    /// Vectors of the columns from `own` on; returns which there are, a bit
    /// each.
    __device__ __forceinline__ uint32_t
    findVectors(int64_t own, int32_t (&vectors)[kRows]) const {
        uint32_t found = 0;
        if (params.ids) {
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const bool exists = own + r < params.numVectors;
                vectors[r] = exists ? params.ids[own + r] : -1;
                found |= vectors[r] >= 0 ? 1u << r : 0u;
            }
            return found;
        }
        // kRows divides 8, and own is a multiple of it.
        if (own < params.numVectors) {
            found = params.allowed[own / 8] >> (own % 8);
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            vectors[r] = int32_t(own + r);
            found &= own + r < params.numVectors ? ~0u : ~(1u << r);
        }
        return found & ((1u << kRows) - 1);
    }

    __device__ __forceinline__ static float nothing() {
        return __uint_as_float(0x7FFFFFFFu);
    }

    /// The columns of a warp that reads no vector.
    __device__ __forceinline__ void storeNothing(int64_t first) {
        for (int q = 0; q < params.numQueries; ++q) {
            for (int i = threadIdx.x % kWarpSize; i < kVectorsPerWarp;
                 i += kWarpSize) {
                if (first + i < params.numVectors) {
                    params.distances[q * params.distanceStride + first + i] =
                            nothing();
                }
            }
        }
    }

    __device__ __forceinline__ void takeVectors(int64_t first) {
        const int lane = threadIdx.x % Lanes;
        const int group = threadIdx.x % kWarpSize / Lanes;
        const int padded = paddedDim();
        const T* base = static_cast<const T*>(params.vectors);

        int32_t vectors[kRows]; // filtered
        uint32_t found = ~0u;
        if constexpr (Filtered) {
            found = findVectors(first + group * kRows, vectors);
            if (!__any_sync(kFullWarp, found != 0)) {
                storeNothing(first);
                return;
            }
        }
        float sums[kRows * Queries];
#pragma unroll
        for (int i = 0; i < kRows * Queries; ++i) {
            sums[i] = 0.0f;
        }
        for (int chunk = 0; chunk < padded; chunk += kChunk) {
            float x[kRows][4];
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                if constexpr (Filtered) {
                    loadComponents(
                            x[r],
                            base + int64_t(vectors[r]) * params.d,
                            (found >> r) & 1,
                            chunk,
                            lane);
                } else {
                    const int64_t vector = first + group * kRows + r;
                    loadComponents(
                            x[r],
                            base + vector * params.d,
                            vector < params.numVectors,
                            chunk,
                            lane);
                }
            }
#pragma unroll
            for (int q = 0; q < Queries; ++q) {
                float y[4];
                const float* query = queries + q * padded + chunk;
                if constexpr (VectorLoads) {
                    reinterpret_cast<float4&>(y) =
                            reinterpret_cast<const float4*>(query)[lane];
                } else {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        y[j] = query[offset(lane, j)];
                    }
                }
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                    float& sum = sums[q * kRows + r];
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        if constexpr (IsL2) {
                            const float difference = x[r][j] - y[j];
                            sum = fmaf(difference, difference, sum);
                        } else {
                            sum = fmaf(x[r][j], y[j], sum);
                        }
                    }
                }
            }
        }
        reduceAndStore(sums, first + group * kRows, lane, found);
    }

    __device__ __forceinline__ void loadComponents(
            float (&x)[4],
            const T* vector,
            bool exists,
            int chunk,
            int lane) {
        if constexpr (VectorLoads) {
            Quad<T> quad = {};
            if (exists && chunk + lane * 4 < params.d) {
                quad = reinterpret_cast<const Quad<T>*>(vector + chunk)[lane];
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                x[j] = toFloat(quad.values[j]);
            }
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int c = chunk + offset(lane, j);
                x[j] = exists && c < params.d ? toFloat(vector[c]) : 0.0f;
            }
        }
    }

    /// Adds up the sums over the lanes of a group. Each step hands half of the
    /// sums to the partner and takes the other half, so that it costs about
    /// one shuffle a sum and not log2(Lanes).
    template <int Count, int Distance>
    __device__ __forceinline__ static void reduce(float* sums, int lane) {
        if constexpr (Distance >= 1) {
            const bool upper = lane & Distance;
            if constexpr (Count > 1) {
                constexpr int kHalf = Count / 2;
#pragma unroll
                for (int i = 0; i < kHalf; ++i) {
                    const float keep = upper ? sums[i + kHalf] : sums[i];
                    const float give = upper ? sums[i] : sums[i + kHalf];
                    sums[i] = keep + __shfl_xor_sync(kFullWarp, give, Distance);
                }
                reduce<kHalf, Distance / 2>(sums, lane);
            } else {
                sums[0] += __shfl_xor_sync(kFullWarp, sums[0], Distance);
                reduce<1, Distance / 2>(sums, lane);
            }
        }
    }

    __device__ __forceinline__ void reduceAndStore(
            float (&sums)[kRows * Queries],
            int64_t firstVector,
            int lane,
            uint32_t found) {
        constexpr int kCount = kRows * Queries;
        reduce<kCount, Lanes / 2>(sums, lane);
        // Which sums this lane holds: the bits of the lane, highest first,
        // chose the upper or lower half while there was more than one.
        constexpr int kHeld = kCount > Lanes ? kCount / Lanes : 1;
        int index = 0;
        int count = kCount;
        bool owner = true;
#pragma unroll
        for (int distance = Lanes / 2; distance >= 1; distance /= 2) {
            if (count > 1) {
                count /= 2;
                index += (lane & distance) ? count : 0;
            } else {
                owner = owner && !(lane & distance);
            }
        }
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const int q = (index + i) / kRows;
            const int64_t vector = firstVector + (index + i) % kRows;
            if (owner && q < params.numQueries && vector < params.numVectors) {
                float value = sums[i];
                if constexpr (Filtered) {
                    value = (found >> ((index + i) % kRows)) & 1 ? value
                                                                 : nothing();
                }
                params.distances[q * params.distanceStride + vector] = value;
            }
        }
    }
};

template <
        class T,
        int Lanes,
        int Queries,
        bool IsL2,
        bool VectorLoads,
        bool Filtered>
__global__ void __launch_bounds__(kFewQueriesThreads, Queries >= 16 ? 2 : 4)
        fewQueriesKernel(const __grid_constant__ FewQueriesParams params) {
    extern __shared__ float4 sharedQueries[];
    FewQueriesBody<T, Lanes, Queries, IsL2, VectorLoads, Filtered>{
            reinterpret_cast<float*>(sharedQueries), params}
            .run();
}

} // namespace faiss_bits
