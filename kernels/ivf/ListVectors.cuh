/// The vectors of inverted lists, for tiles (TileVectors.cuh) and by lanes.
#pragma once

#include <type_traits>

#include "kernels/ivf/DecodedList.cuh"

namespace faiss_bits {

/// The number of vectors of list l.
__device__ __forceinline__ uint32_t
listLength(const IvfLists& lists, uint32_t l) {
    return lists.lengths64
            ? uint32_t(static_cast<const int64_t*>(lists.lengths)[l])
            : uint32_t(static_cast<const int32_t*>(lists.lengths)[l]);
}

/// The list of a row's probe; numLists if there is none.
__device__ __forceinline__ uint32_t
probedList(const IvfParams& params, uint32_t row, uint32_t probe) {
    const idx_t list = params.probes[int64_t(row) * params.nprobe + probe];
    return list >= 0 && list < params.lists.numLists
            ? uint32_t(list)
            : uint32_t(params.lists.numLists);
}

/// The id of a vector of a list.
__device__ __forceinline__ int64_t
listId(const IvfLists& lists, uint32_t list, uint32_t vector) {
    switch (lists.idKind) {
        case ListIds::Given64:
            return static_cast<const int64_t*>(lists.ids[list])[vector];
        case ListIds::Given32:
            return static_cast<const int32_t*>(lists.ids[list])[vector];
        default:
            return int64_t(list) << 32 | vector;
    }
}

/// float32 vectors.
template <ListLayout kOfLayout>
struct FloatList {
    static constexpr ListCoding kCoding = ListCoding::Float32;
    static constexpr ListLayout kLayout = kOfLayout;

    int d;

    __device__ __forceinline__ explicit FloatList(const IvfParams& params)
            : d(params.d) {}

    struct Column {
        const float* x; // of the first, a multiple of 32
        int d;

        __device__ __forceinline__ float at(int64_t i) const {
            return near(uint32_t(i));
        }
        __device__ __forceinline__ float near(uint32_t i) const {
            return x
                    [kLayout == ListLayout::Rows ? i * uint32_t(d)
                                                 : inGroups(i)];
        }

       private:
        __device__ __forceinline__ uint32_t inGroups(uint32_t i) const {
            return (i / kListGroup * d) * kListGroup + i % kListGroup;
        }
    };

    struct Vector {
        const float* list;
        int64_t v;
        int d;

        __device__ __forceinline__ float operator()(int c) const {
            return list[listPlace<kLayout>(v, c, d)];
        }
        /// Components c and on.
        template <int kCount>
        __device__ __forceinline__ void load(int c, float (&xs)[kCount]) const {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                xs[i] = (*this)(c + i);
            }
        }
    };

    __device__ __forceinline__ Column
    column(const TilePlace& place, int c) const {
        return {static_cast<const float*>(place.list) +
                        listPlace<kLayout>(place.first, c, d),
                d};
    }
    __device__ __forceinline__ Vector
    vector(const TilePlace& place, int64_t i) const {
        return {static_cast<const float*>(place.list), place.first + i, d};
    }
};

/// The vectors of IvfParams, of a coding.
template <ListCoding kCoding>
struct VectorsOfLists {
    using Params = IvfParams;

    __device__ __forceinline__ static bool areNear(
            const IvfParams& params,
            int count) {
        return params.d < UINT32_MAX / count;
    }

    template <ListLayout kLayout>
    using ListOf = std::conditional_t<
            kCoding == ListCoding::Float32,
            FloatList<kLayout>,
            DecodedList<kCoding, kLayout>>;

    /// Calls body(vectors) with the vectors of the layout.
    template <class Body>
    __device__ __forceinline__ static void with(
            const IvfParams& params,
            const Body& body) {
        if constexpr (kCoding == ListCoding::Scalar6) {
            body(ListOf<ListLayout::Interleaved>(params));
        } else if (params.lists.layout == ListLayout::Rows) {
            body(ListOf<ListLayout::Rows>(params));
        } else {
            body(ListOf<ListLayout::Interleaved>(params));
        }
    }
};

} // namespace faiss_bits
