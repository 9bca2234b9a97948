#pragma once

#include <algorithm>
#include <string>

#include "faiss_bits/python/RangeCalls.h"
#include "faiss_bits/words/EditDistanceIndex.h"

/// Range searches of words for the Python module, which makes the arrays once
/// their size is known.
namespace faiss_bits::python {

/// EditDistanceIndex::rangeSearch; the caller's own.
inline words::WordRange* rangeOfWords(
        const EditDistanceIndex& index,
        idx_t n,
        const uint8_t* queries,
        const idx_t* offsets,
        idx_t maxDistance,
        const std::string& method) {
    return new words::WordRange(
            index.rangeSearch(n, queries, offsets, maxDistance, method));
}

/// Number of results.
inline idx_t sizeOfRange(const words::WordRange& range) {
    return range.limits.back();
}

/// limits [queries + 1]; distances and ids [sizeOfRange].
inline void copyRange(
        const words::WordRange& range,
        idx_t* limits,
        int32_t* distances,
        idx_t* ids) {
    std::copy(range.limits.begin(), range.limits.end(), limits);
    std::copy(range.distances.begin(), range.distances.end(), distances);
    std::copy(range.ids.begin(), range.ids.end(), ids);
}

/// On the device, in arrays that Python makes there, part by part.
class PythonWordRange : public DeviceWordRange {
   public:
    explicit PythonWordRange(PyObject* allocate) : maker_(allocate) {}

    Part allocate(idx_t size) override {
        const ArrayMaker::Arrays arrays = maker_.make(size);
        return {size,
                reinterpret_cast<int32_t*>(arrays.distances),
                reinterpret_cast<idx_t*>(arrays.ids)};
    }

   private:
    ArrayMaker maker_;
};

/// EditDistanceIndex::rangeSearchOnDevice; lims is [n + 1], on the host.
inline void rangeOfWordsOnDevice(
        const EditDistanceIndex& index,
        idx_t n,
        const uint8_t* queries,
        const idx_t* offsets,
        idx_t maxDistance,
        const std::string& method,
        PyObject* allocate,
        size_t lims) {
    PythonWordRange result(allocate);
    index.rangeSearchOnDevice(n, queries, offsets, maxDistance, result, method);
    std::copy(
            result.lims.begin(),
            result.lims.end(),
            reinterpret_cast<idx_t*>(lims));
}

} // namespace faiss_bits::python
