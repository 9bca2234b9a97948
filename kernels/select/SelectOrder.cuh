/// The total order of entries in a row, with implicit and with given ids.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/SelectParams.h"

namespace faiss_bits {

/// The order of entries when ids are implicit.
struct EntryLess {
    __device__ __forceinline__ bool operator()(uint64_t a, uint64_t b) const {
        return a < b;
    }
};

/// The order of entries when ids are given: equal keys compare by id, which is
/// read only then.
struct GivenIdLess {
    const void* ids; // of this row
    bool ids64;

    __device__ __forceinline__ int64_t idOf(uint32_t column) const {
        return ids64 ? static_cast<const int64_t*>(ids)[column]
                     : int64_t(static_cast<const int32_t*>(ids)[column]);
    }

    __device__ __forceinline__ bool operator()(uint64_t a, uint64_t b) const {
        if (entryKey(a) != entryKey(b)) {
            return entryKey(a) < entryKey(b);
        }
        if (a == b || a == kNoEntry || b == kNoEntry) {
            return a < b;
        }
        const int64_t idA = idOf(entryColumn(a));
        const int64_t idB = idOf(entryColumn(b));
        return idA != idB ? idA < idB : a < b;
    }
};

template <bool GivenIds>
__device__ __forceinline__ auto makeLess(const SelectParams& p, uint32_t row) {
    if constexpr (GivenIds) {
        const size_t offset = size_t(p.rowStride) * row * (p.ids64 ? 8 : 4);
        return GivenIdLess{static_cast<const char*>(p.ids) + offset, p.ids64};
    } else {
        return EntryLess{};
    }
}

} // namespace faiss_bits
