/// What the vectors of a list share, four components at a time: the center that
/// estimates subtract, and what codes are decoded with.
#pragma once

#include <cfloat>
#include <cstdint>

#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// Components c to c + 3 of a row of d, zeros behind the last; c is a multiple
/// of four.
__device__ __forceinline__ float4 fourOfRow(const float* row, int c, int d) {
    if (c + 4 <= d && reinterpret_cast<uintptr_t>(row) % sizeof(float4) == 0) {
        return __ldg(reinterpret_cast<const float4*>(row + c));
    }
    const auto at = [&](int i) {
        return c + i < d ? __ldg(row + c + i) : 0.0f;
    };
    return {at(0), at(1), at(2), at(3)};
}

/// The row of a list that is added to its vectors; nullptr: nothing is.
__device__ __forceinline__ const float* centroidOf(
        const IvfParams& params,
        uint32_t list) {
    const float* centroids = params.lists.decoding.centroids;
    return centroids ? centroids + int64_t(list) * params.d : nullptr;
}

/// Of one list, where they lie.
template <class Vectors>
class ListTables {
   public:
    /// The center is what params say, or the first vector of the list.
    __device__ __forceinline__ ListTables(
            const Vectors& vectors,
            const TilePlace& place,
            const IvfParams& params)
            : params_(params),
              first_(vectors.vector(firstOf(place), 0)),
              center_(params.centers ? params.centers +
                                      int64_t(place.listNumber) * params.d
                                     : nullptr),
              centroid_(centroidOf(params, place.listNumber)) {}

    /// Whether the center is what params say.
    __device__ __forceinline__ bool isGiven() const {
        return center_ != nullptr;
    }
    /// A component that is not finite is no help: zero, as behind the last.
    __device__ __forceinline__ float center(int c) const {
        const float value = c >= params_.d ? 0.0f
                : center_                  ? __ldg(center_ + c)
                                           : first_(c);
        return fabsf(value) <= FLT_MAX ? value : 0.0f;
    }
    __device__ __forceinline__ float4 centers(int c) const {
        return {center(c), center(c + 1), center(c + 2), center(c + 3)};
    }
    __device__ __forceinline__ float4 centroids(int c) const {
        return centroid_ ? fourOfRow(centroid_, c, params_.d)
                         : float4{0, 0, 0, 0};
    }
    __device__ __forceinline__ float4 starts(int c) const {
        return fourOfRow(params_.starts, c, params_.d);
    }
    __device__ __forceinline__ float4 steps(int c) const {
        return fourOfRow(params_.steps, c, params_.d);
    }

   private:
    __device__ __forceinline__ static TilePlace firstOf(TilePlace place) {
        place.first = 0;
        return place;
    }

    const IvfParams& params_;
    typename Vectors::Vector first_;
    const float* center_;
    const float* centroid_;
};

/// Those of kDepth components in shared memory, as many as the vectors need.
template <class Vectors, int kDepth>
class SharedTables {
    static constexpr ListCoding kCoding = Vectors::kCoding;
    enum { kCenters, kCentroids, kStarts, kSteps };
    static constexpr int kTables = kCoding == ListCoding::Float32 ? kCenters + 1
            : isScalar(kCoding)                                   ? kSteps + 1
                                : kCentroids + 1;

   public:
    struct Storage {
        alignas(16) float values[kTables][kDepth];
    };

    __device__ __forceinline__ explicit SharedTables(Storage& storage)
            : storage_(storage) {}

    /// By kDepth / 4 or more threads, between barriers.
    __device__ __forceinline__ void read(
            const ListTables<Vectors>& from) const {
        // The center is what takes long: a thread for each component.
        if (threadIdx.x < kDepth) {
            storage_.values[kCenters][threadIdx.x] =
                    from.center(int(threadIdx.x));
        }
        const int c = 4 * int(blockDim.x - 1 - threadIdx.x);
        if (c < kDepth) {
            if constexpr (kTables > kCentroids) {
                four(kCentroids, c) = from.centroids(c);
            }
            if constexpr (kTables > kSteps) {
                four(kStarts, c) = from.starts(c);
                four(kSteps, c) = from.steps(c);
            }
        }
    }

    __device__ __forceinline__ float center(int c) const {
        return storage_.values[kCenters][c];
    }
    __device__ __forceinline__ float4 centers(int c) const {
        return four(kCenters, c);
    }
    __device__ __forceinline__ float4 centroids(int c) const {
        return four(kCentroids, c);
    }
    __device__ __forceinline__ float4 starts(int c) const {
        return four(kStarts, c);
    }
    __device__ __forceinline__ float4 steps(int c) const {
        return four(kSteps, c);
    }

   private:
    __device__ __forceinline__ float4& four(int table, int c) const {
        return *reinterpret_cast<float4*>(&storage_.values[table][c]);
    }

    Storage& storage_;
};

} // namespace faiss_bits
