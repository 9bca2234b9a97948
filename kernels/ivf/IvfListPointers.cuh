/// Where the codes and ids of a row's lists lie, for a block that reads single
/// vectors of them: each vector costs one wait less than through the tables of
/// all lists.
#pragma once

#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

struct IvfListPointers {
    const uint8_t* codes[kMostDirectProbes]; // of probes
    const void* ids[kMostDirectProbes];      // unless they are places

    /// What a thread of a block asks for, before the block does something else;
    /// numbers: of the lists, in shared memory, each of them written by the
    /// thread that reads it here.
    template <int kThreads>
    struct Ahead {
        static constexpr int kOfThread = kMostDirectProbes / kThreads;
        const uint8_t* codes[kOfThread];
        const void* ids[kOfThread];
        uint32_t nprobe;

        __device__ __forceinline__
        Ahead(const IvfParams& search, const uint32_t* numbers)
                : nprobe(search.nprobe) {
            const IvfLists& lists = search.lists;
#pragma unroll
            for (int i = 0; i < kOfThread; ++i) {
                const uint32_t p = threadIdx.x + i * kThreads;
                codes[i] = nullptr;
                ids[i] = nullptr;
                if (p < nprobe && numbers[p] < lists.numLists) {
                    codes[i] = static_cast<const uint8_t*>(
                            lists.vectors[numbers[p]]);
                    if (lists.idKind != ListIds::Places) {
                        ids[i] = lists.ids[numbers[p]];
                    }
                }
            }
        }

        __device__ __forceinline__ void write(IvfListPointers& to) const {
#pragma unroll
            for (int i = 0; i < kOfThread; ++i) {
                const uint32_t p = threadIdx.x + i * kThreads;
                if (p < nprobe) {
                    to.codes[p] = codes[i];
                    to.ids[p] = ids[i];
                }
            }
        }
    };

    /// As listId(), of the list of a probe.
    __device__ __forceinline__ int64_t
    idOf(const IvfLists& lists,
         uint32_t list,
         uint32_t probe,
         uint32_t vector) const {
        switch (lists.idKind) {
            case ListIds::Given64:
                return static_cast<const int64_t*>(ids[probe])[vector];
            case ListIds::Given32:
                return static_cast<const int32_t*>(ids[probe])[vector];
            default:
                return listId(lists, list, vector);
        }
    }
};

} // namespace faiss_bits
